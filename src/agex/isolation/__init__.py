"""Executors of guest code: in this process, or in a worker that can be killed and confined.

Every level opens sessions with the same methods, so that a task does not know where its code runs. In reading
order: `executor` (the interface, and the level ``none``), `wire` (messages), `lockdown` (confinement by the
operating system), `rpc` (use of host and guest objects over the wire), `worker` (both ends of a session);
then the levels `process`, `kernel`, `container`, and `levels`, which makes one executor for each.

No level falls back to a weaker one: a level that cannot hold here is refused before anything runs. The host
never unpickles the bytes of a worker.
"""

from agex.isolation.container.executor import ContainerExecutor
from agex.isolation.executor import (
    Executor,
    GuestSession,
    InProcessExecutor,
    Level,
    Python,
    Wall,
    resolve_python,
)
from agex.isolation.kernel import KernelExecutor
from agex.isolation.levels import executor_of
from agex.isolation.process.executor import ProcessExecutor

__all__ = [
    "ContainerExecutor",
    "Executor",
    "GuestSession",
    "InProcessExecutor",
    "KernelExecutor",
    "Level",
    "ProcessExecutor",
    "Python",
    "Wall",
    "executor_of",
    "resolve_python",
]
