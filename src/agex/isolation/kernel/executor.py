"""Executors of the level ``kernel``, for Linux and for macOS."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agex.errors import IsolationUnavailable
from agex.isolation.executor import Level, Wall
from agex.isolation.lockdown.linux import missing, walls
from agex.isolation.lockdown.namespaces import DEVICES, installation
from agex.isolation.lockdown.own_directory import TEMPORARY
from agex.isolation.process.executor import ProcessExecutor, Saved
from agex.isolation.process.subprocess_executor import PipedExecutor
from agex.isolation.worker.launch import Launcher, Order
from agex.isolation.worker.rlimits import resources_of
from agex.isolation.workspace.directory import (
    OverlayDirectory,
    WorkerDirectory,
    scratch,
    workspace_path,
)
from agex.sandbox import Limits

if TYPE_CHECKING:
    from agex.files import FileTree

__all__ = ["KernelExecutor", "SeatbeltExecutor"]

_MEMORY_MB = 4096
"""Growth of a worker's address space without a limit: there must be one."""
_OPEN_FILES = 64
_OPEN_FILES_OF_FULL = 1024
_THREADS = 64
"""Enough for a linear algebra library on a large machine."""
_MACOS_SYSTEM = ["/System/Library", "/usr/lib", "/private/var/db/dyld", "/private/var/db/timezone"]
"""Shared libraries and time zones of macOS."""


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

    def _directory(self, tree: FileTree) -> WorkerDirectory:
        return OverlayDirectory(tree, workspace_path(installation()))

    def _placed(self, order: Order, limits: Limits, directory: WorkerDirectory | None) -> Order:
        place = scratch(workspace_path(installation())) if directory is None else directory.order
        resources = {**order.resources, "file_size_mb": place["size_mb"]}
        if limits.open_files is None:
            resources["open_files"] = _OPEN_FILES_OF_FULL
        return replace(
            order,
            resources=resources,
            walls={**order.walls, "directory": place},
            place={"path": place["path"], "temporary": TEMPORARY},
        )


class SeatbeltExecutor(PipedExecutor):
    """Runs each task's code in an interpreter of its own, under a profile of Seatbelt.

    It is written and **not exercised**: see `lockdown.seatbelt`.

    Raises:
        IsolationUnavailable: this is no macOS.
    """

    level: Level = "kernel"

    def __init__(self) -> None:
        system: str = sys.platform  # else mypy takes the rest for unreachable where it runs
        if system != "darwin":
            raise IsolationUnavailable(f"Seatbelt is part of macOS, and this is {system}")
        super().__init__()

    def walls(self) -> tuple[Wall, ...]:
        return (Wall(name="seatbelt", detail="not exercised"),)

    def _confinement(self, limits: Limits) -> dict[str, Any]:
        if limits.memory_mb is not None:
            raise IsolationUnavailable(
                "max_memory_mb does not hold at isolation='kernel' on macOS; leave it out, or use "
                "isolation='container'"
            )
        return {
            "resources": {**resources_of(limits), "file_size_mb": 0},
            "readable": [*installation(), *_MACOS_SYSTEM],
            "devices": list(DEVICES),
        }
