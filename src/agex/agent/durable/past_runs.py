"""A run as the commits of a state have it: where it began, its events, its inputs and its calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agex import values
from agex.agent.call.events import Event
from agex.agent.durable.records import RunRecord, known_call
from agex.agent.durable.run_journal import GIVEN, KnownCall
from agex.agent.durable.saved_runs import named_inputs, record_of
from agex.errors import StateError

__all__ = ["PastRun", "past_run"]


@dataclass(frozen=True, kw_only=True)
class PastRun:
    """A run, from its first commit to its last."""

    record: RunRecord
    start: str | None
    """The commit before its first; None where there was none."""
    commits: tuple[Any, ...]
    """Those with events of it, oldest first."""
    events: tuple[Event, ...]
    """Its own, without those of tasks that it called."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """As they were given; without those that could not be kept."""
    calls: Mapping[str, KnownCall] = field(default_factory=dict)
    value: Any = None
    has_value: bool = False


def past_run(state: Any, run_id: str) -> PastRun:
    """Return a run out of the history of a ``Versioned`` state.

    Raises:
        StateError: the state has no such run, or keeps none.
        StateCorrupt: a record is damaged.
    """
    record, entry = record_of(state, run_id)
    commits = [one for one in state.history() if any(event.run_id == run_id for event in one.events)]
    if not commits:
        raise StateError(f"Run {run_id!r} has no commits on this branch: its history is gone, or elsewhere.")
    last, first = commits[0], commits[-1]
    is_over = record.status in ("done", "failed")
    where = last.parent if is_over else last.hash  # the commit that ends a run takes its entries away
    keys = [key for key in state.entry_keys(where) if key.startswith(f"{run_id}/call/")]
    given = f"{run_id}/{GIVEN}"
    inputs = named_inputs(state.entry(given, last.hash), given)
    has_value = record.status == "done" and type(entry.get("value")) is not values.NotKept
    return PastRun(
        record=record,
        start=first.parent,
        commits=tuple(reversed(commits)),
        events=tuple(event for one in reversed(commits) for event in one.events if event.run_id == run_id),
        inputs=inputs,
        calls=dict(known_call(state.entry(key, where), key) for key in keys),
        value=entry.get("value"),
        has_value=has_value and "value" in entry,
    )
