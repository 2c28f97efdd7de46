"""The executors of this process: one for each level, made when first asked for."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Mapping

from agex.isolation.container.executor import ContainerExecutor
from agex.isolation.executor import Executor, InProcessExecutor, Level
from agex.isolation.kernel.executor import KernelExecutor, SeatbeltExecutor
from agex.isolation.process.executor import ProcessExecutor

__all__ = ["executor_of"]


def _kernel() -> Executor:
    if sys.platform == "darwin":
        return SeatbeltExecutor()
    return KernelExecutor()


_MAKERS: Mapping[Level, Callable[[], Executor]] = {
    "none": InProcessExecutor,
    "process": ProcessExecutor,
    "kernel": _kernel,
    "container": ContainerExecutor,
}

_lock = threading.Lock()
_made: dict[Level, Executor] = {}


def executor_of(level: Level) -> Executor:
    """Return the executor of a level, which all agents of this process share.

    Raises:
        IsolationUnavailable: the level does not hold here; the message names what is missing.
    """
    with _lock:
        if level not in _made:
            _made[level] = _MAKERS[level]()
            atexit.register(_made[level].close)
        return _made[level]
