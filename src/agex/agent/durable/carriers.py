"""Who carries a run on: errors that end the work of one process on a run, and leave the run open."""

from __future__ import annotations

from agex.errors import (
    AgexError,
    IsolationUnavailable,
    ReplayMismatch,
    StateConflict,
    StateError,
    TaskSuspended,
)
from agex.isolation.wire.error_codec import WorkerLost

__all__ = ["LEFT_OPEN", "PLACE_LOST", "Enqueued", "LeaseLost", "RunReleased"]


class Enqueued(AgexError):
    """The run is written, and is left to a worker before its first step."""


class RunReleased(StateError):
    """The process was asked to stop: the run is open, and its action is run again when it goes on."""


class LeaseLost(StateConflict):
    """The lease could not be renewed in time, or another worker has it."""


PLACE_LOST = (IsolationUnavailable, WorkerLost)
"""The place where guest code ran is gone, outside of an action; its run goes on in another one."""
LEFT_OPEN = (TaskSuspended, ReplayMismatch, *PLACE_LOST)
"""After these nothing is committed: the action is run again, from its beginning."""
