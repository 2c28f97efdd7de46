"""Executor of the level ``kernel`` on Linux."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agex.errors import IsolationUnavailable
from agex.isolation.executor import Level, Wall
from agex.isolation.lockdown.linux import missing, walls
from agex.isolation.lockdown.namespaces import installation
from agex.isolation.process.executor import ProcessExecutor, Saved
from agex.isolation.worker.launch import Launcher, Order
from agex.sandbox import Limits

__all__ = ["KernelExecutor"]

_MEMORY_MB = 4096
"""Growth of a worker's address space without a limit: there must be one."""
_OPEN_FILES = 64
_THREADS = 64
"""Enough for a linear algebra library on a large machine."""


class KernelExecutor(ProcessExecutor):
    """Runs each task's code in a process of its own that the kernel confines.

    It reads the interpreter's installation and nothing else, writes no file, reaches no network and no
    other process, starts none, and has bounds on memory, threads and descriptors.

    Raises:
        IsolationUnavailable: this system lacks a mechanism; the message says which, and what to do.
    """

    level: Level = "kernel"

    def __init__(self) -> None:
        lacks = missing()
        if lacks:
            raise IsolationUnavailable(f"isolation='kernel' needs {'; and '.join(lacks)}")
        super().__init__()
        self._launcher = Launcher(namespaces=True)

    def walls(self) -> tuple[Wall, ...]:
        return (*super().walls(), *walls())

    def _order(self, saved: Saved, limits: Limits, about: Mapping[str, Any]) -> Order:
        bounded = limits._replace(
            memory_mb=limits.memory_mb or _MEMORY_MB,
            open_files=limits.open_files or _OPEN_FILES,
        )
        order = super()._order(saved, bounded, about)
        return replace(
            order,
            resources={**order.resources, "file_size_mb": 0},
            walls={"readable": installation(), "threads": _THREADS},
        )
