"""What sessions of one task have in common: their level, what they may do, and how a worker is had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from agex.isolation.executor import Level
from agex.isolation.wire.framing import Channel
from agex.sandbox import Limits, Policy

if TYPE_CHECKING:
    from agex.isolation.rpc.file_rpc import FileRequests
    from agex.sandbox.runtime.workspace_files import Files

__all__ = ["StaysThere", "TaskEnvironment", "WorkerHandle"]


class WorkerHandle(Protocol):
    """A process that serves one session."""

    channel: Channel

    def interrupt(self) -> None:
        """Have it stop what it runs, at its next check."""

    def terminate(self) -> None:
        """Kill it, from any thread: the connection stays open, and whoever reads from it notices."""

    def kill(self) -> str:
        """Kill it with all it started, wait for its end, and say how it ended."""
        ...

    def close(self) -> None:
        """End it, without looking how."""


@dataclass(frozen=True, kw_only=True)
class TaskEnvironment:
    """What sessions of one task have in common."""

    level: Level
    policy: Policy
    limits: Limits
    classes: tuple[type, ...]
    granted: Mapping[str, Any]
    """Functions and objects that stay in the host, by name."""
    start: Callable[[Mapping[str, Any]], WorkerHandle]
    """Starts a worker, given the descriptions of those."""
    walls: tuple[str, ...] = ()
    files: Files | None = None
    """The workspace of the guest."""

    def file_requests(self) -> FileRequests | None:
        """Return what answers the requests of one session for files; None where there is no workspace."""
        if self.files is None:
            return None
        from agex.isolation.rpc.file_rpc import FileRequests

        return FileRequests(self.files)


class StaysThere:
    """Stands for a variable that cannot leave the worker."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
