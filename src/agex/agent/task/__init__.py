"""Tasks: typed functions whose body an agent writes, from their declaration to the record of each call.

This room never decides what a turn does (``loop``) or how code runs (``execution``). In order: `decorator`,
`task`, `invocation`, `run`, `pages`, `returned_functions`, `pickling`, `remote_calls`, `state_codec`.
"""

__all__: list[str] = []
