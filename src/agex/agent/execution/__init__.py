"""Carrying out a model's actions in a session: Python, files and terminal commands.

This room asks no model and does not isolate: sessions come from ``sandbox`` and ``isolation``. In order:
`execution`, the `grants` of its sandbox, `name_bindings`, `guest_callable`, the `task_bridge` to async
functions and other tasks, `task_workspace`, `worker_threads`.
"""

__all__: list[str] = []
