"""Errors of a run whose code did otherwise than before, and of calls that were not approved."""

from __future__ import annotations

from agex.agent.durable.host_calls import HostCall
from agex.agent.durable.records import CallRecord
from agex.errors import ReplayMismatch

__all__ = ["mismatch", "rejected", "unrecorded"]


def mismatch(expected: CallRecord, got: str) -> ReplayMismatch:
    """Return the error for another call than the recorded one."""
    where = f" in line {expected.line}" if expected.line else ""
    return ReplayMismatch(
        f"The code of the run did otherwise than before. Recorded at turn "
        f"{expected.turn}{where}: {expected.text}. Now: {got}. No call was made.",
        expected.text,
        got,
        turn=expected.turn,
        line=expected.line,
    )


def unrecorded(turn: int, call: HostCall) -> ReplayMismatch:
    """Return the error for a call of a replay that is not recorded."""
    where = f" in line {call.line}" if call.line else ""
    return ReplayMismatch(
        f"The run was replayed, and its code made a call at turn {turn}{where} that is not recorded: {call}. "
        "It was not made.",
        "no further call",
        str(call),
        turn=turn,
        line=call.line,
    )


def rejected(call: HostCall, reason: str) -> str:
    """Return the text of the error for a call that was not approved."""
    return f"{call.name} was not approved: {reason}" if reason else f"{call.name} was not approved"
