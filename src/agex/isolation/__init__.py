"""Where guest code runs: in this process, or in a worker that can be killed and walled in.

Every level gives sessions with the same methods, so that a task does not know where its code
runs. No level falls back to a weaker one: what cannot be held here is refused before anything
runs. What a worker sends is bytes to judge: the host never unpickles it.
"""

from agex.isolation.container.executor import ContainerExecutor
from agex.isolation.executor import Executor, GuestSession, InProcessExecutor, Level, Wall
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
    "Wall",
    "executor_of",
]
