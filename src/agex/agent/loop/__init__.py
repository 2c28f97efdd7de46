"""The turns of a task: ask the model, carry its actions out, show it the effect.

`loop` decides and has no input or output of its own; `drivers` carry its effects out, in a thread or on an
event loop. This room never writes a prompt and never runs code itself. In order: `loop`, `task_endings`,
`drivers`, `model_requests`, `telemetry`.
"""

__all__: list[str] = []
