"""Who carries a run on: errors that end the work of one process on a run, and leave the run open."""

from __future__ import annotations

from agex.errors import AgexError, StateConflict, StateError

__all__ = ["Enqueued", "LeaseLost", "RunReleased"]


class Enqueued(AgexError):
    """The run is written, and is left to a worker before its first step."""


class RunReleased(StateError):
    """The process was asked to stop: the run is open, and its action is run again when it goes on."""


class LeaseLost(StateConflict):
    """The lease could not be renewed in time, or another worker has it."""
