"""One call of a task while it lasts: its terms, what it spends, what it records, who called it.

Calls form a tree. This room never drives a call and never talks to a model. In order: `budget`, `events`,
`call`, `options`, `terms`, `acceptance` of the value, `host_errors`.
"""

__all__: list[str] = []
