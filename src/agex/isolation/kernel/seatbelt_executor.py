"""Executor of the level ``kernel`` on macOS. It is written and **not exercised**: see `lockdown.seatbelt`."""

from __future__ import annotations

import sys
from typing import Any

from agex.errors import IsolationUnavailable
from agex.isolation.executor import Level, Wall
from agex.isolation.lockdown.namespaces import DEVICES, installation
from agex.isolation.process.subprocess_executor import PipedExecutor
from agex.isolation.worker.rlimits import resources_of
from agex.sandbox import Limits

__all__ = ["SeatbeltExecutor"]

_SYSTEM = ["/System/Library", "/usr/lib", "/private/var/db/dyld", "/private/var/db/timezone"]
"""Shared libraries and time zones."""


class SeatbeltExecutor(PipedExecutor):
    """Runs each task's code in an interpreter of its own, under a profile of Seatbelt.

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
            "readable": [*installation(), *_SYSTEM],
            "devices": list(DEVICES),
        }
