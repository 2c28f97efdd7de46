"""Environment of one task: the level, policy and limits of its sessions, and how a worker is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from agex.isolation.executor import Level, Python
from agex.isolation.wire.framing import Channel
from agex.sandbox import Limits, Policy

if TYPE_CHECKING:
    from agex.isolation.rpc.file_rpc import FileRequests
    from agex.isolation.workspace.directory import WorkerDirectory
    from agex.sandbox.runtime.workspace_files import Files

__all__ = ["ORPHANED", "StaysThere", "TaskEnvironment", "WorkerHandle"]

ORPHANED = "it ended with the process that had forked it, which was killed"
"""How a worker ended whose end nobody can tell of: the process that waits for it runs no code of guests."""


class WorkerHandle(Protocol):
    """The host's handle of a process that serves one session."""

    channel: Channel
    directory: WorkerDirectory | None
    """The one that it works in, if it has one that the host looks at."""

    def interrupt(self) -> None:
        """Make it stop its run at the next check."""

    def has_ended(self) -> bool:
        """Return whether the process is known to have ended by itself, or by somebody else."""
        ...

    def terminate(self) -> None:
        """Kill it, from any thread: the connection stays open, and its reader notices the end."""

    def kill(self) -> str:
        """Kill it with all it started, wait for its end, and say how it ended."""
        ...

    def close(self) -> None:
        """End it, without looking how."""


@dataclass(frozen=True, kw_only=True)
class TaskEnvironment:
    """Settings that the sessions of one task share."""

    level: Level
    policy: Policy
    limits: Limits
    classes: tuple[type, ...]
    granted: Mapping[str, Any]
    """Functions and objects that stay in the host, by name."""
    start: Callable[[Mapping[str, Any]], WorkerHandle]
    """Starts a worker, with the descriptions of the granted objects."""
    prepare: Callable[[Mapping[str, Any]], bool] | None = None
    """Begins to load what workers need, and returns whether it is loaded; None where nothing is."""
    walls: tuple[str, ...] = ()
    files: Files | None = None
    """The workspace of guest code."""
    python: Python = "guarded"
    """The interpreter of guest code."""

    def file_requests(self) -> FileRequests | None:
        """Return the server of file requests for one session; None where there is no workspace."""
        if self.files is None:
            return None
        from agex.isolation.rpc.file_rpc import FileRequests

        return FileRequests(self.files)


class StaysThere:
    """Marker of a variable that cannot leave the worker."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
