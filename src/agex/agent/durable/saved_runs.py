"""Runs as a state has them: the list of them, and one with all it needs to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from agex import values
from agex.agent.durable.host_calls import HostCall
from agex.agent.durable.records import (
    ExchangeRecord,
    MeansRecord,
    OpeningRecord,
    RunRecord,
    Status,
    TurnRecord,
    known_call,
    read_record,
)
from agex.agent.durable.run_journal import KnownCall, Saved
from agex.errors import StateCorrupt, StateError

__all__ = ["RunInfo", "load", "named_inputs", "open_runs", "record_of", "runs", "the_one"]


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """Where a run stands."""

    run_id: str
    task: str
    status: Status
    """``open``: going on, or its process died; ``suspended`` waits for approval, ``asking`` for an answer."""
    turn: int
    call: HostCall | None
    """The call that waits for approval."""
    started: datetime
    question: str = ""
    """Its question to the caller."""
    message: str = ""
    """Why it failed."""


class _Entries(Protocol):
    """A state with entries of runs."""

    def entry(self, key: str) -> Any: ...

    def entry_keys(self) -> list[str]: ...


def runs(state: Any) -> list[RunInfo]:
    """Return the runs that a ``Versioned`` state knows, oldest first.

    Raises:
        StateError: the state keeps no runs.
        StateCorrupt: a record is damaged.
    """
    held = _require_entries(state)
    keys = held.entry_keys()
    found = [_info(held, key) for key in keys if "/" not in key]
    return sorted(found, key=lambda one: (one.started, one.run_id))


def open_runs(state: Any) -> tuple[list[RunRecord], dict[str, str]]:
    """Return the records of the open runs of a state, oldest first, and why others cannot be read.

    Raises:
        StateError: the state keeps no runs.
    """
    held = _require_entries(state)
    found: list[RunRecord] = []
    damaged: dict[str, str] = {}
    for run_id in held.entry_keys():
        if "/" in run_id:
            continue
        try:
            record = _record(held, run_id)
        except StateCorrupt as error:
            damaged[run_id] = str(error)
        else:
            found += [record] if record.status == "open" else []
    return sorted(found, key=lambda one: (one.started, one.run_id)), damaged


def load(state: Any, run_id: str) -> Saved:
    """Return a run with all that it needs to go on.

    Raises:
        StateError: the state has no such run.
        StateCorrupt: its record is damaged.
    """
    record, entry = record_of(state, run_id)
    held = _require_entries(state)
    keys = [key for key in held.entry_keys() if key.startswith(f"{run_id}/")]
    parts = {key.partition("/")[2]: key for key in keys}
    means = _read(held, MeansRecord, parts.get("means"))
    if means is None and record.status not in ("done", "failed"):
        raise StateCorrupt(f"Run {run_id!r} does not say what its code may use")
    opening = _read(held, OpeningRecord, parts.get("opening"))
    turn = _read(held, TurnRecord, parts.get("turn"))
    return Saved(
        record=record,
        means={} if means is None else means.means,
        inputs=_inputs(held, parts.get("inputs")),
        opening=() if opening is None else tuple(one.message() for one in opening.messages),
        progress=None if turn is None else turn.progress(),
        exchanges=tuple(
            read_record(ExchangeRecord, held.entry(key), key)
            for part, key in sorted(parts.items())
            if part.startswith("exchange/")
        ),
        calls=dict(_call(held, key) for part, key in parts.items() if part.startswith("call/")),
        value=entry.get("value"),
        has_value="value" in entry,
    )


def the_one(state: Any, task: str) -> str:
    """Return the one run of a task that can go on.

    Raises:
        StateError: there is none, or there are several.
    """
    found = [one for one in runs(state) if one.task == task and one.status not in ("done", "failed")]
    if len(found) != 1:
        names = ", ".join(f"{one.run_id} ({one.status}, turn {one.turn})" for one in found)
        there = f"there are several: {names}" if found else "there is none"
        raise StateError(f"Which run of {task!r} is to go on? Give run_id=; {there}.")
    return found[0].run_id


def _require_entries(state: Any) -> _Entries:
    if not hasattr(state, "entry_keys"):
        raise StateError(f"{state!r} keeps no runs; give a Versioned state.")
    held: _Entries = state
    return held


def _record(held: _Entries, run_id: str) -> RunRecord:
    record = read_record(RunRecord, held.entry(run_id), run_id)
    if record.run_id != run_id:
        raise StateCorrupt(f"The entry of run {run_id!r} says that it is of run {record.run_id!r}")
    return record


def _info(held: _Entries, run_id: str) -> RunInfo:
    record = _record(held, run_id)
    call = None
    if record.status == "suspended":
        key = f"{run_id}/call/{record.call}"
        call = Saved(record=record, calls=dict([_call(held, key)])).waiting()
    return RunInfo(
        run_id=run_id,
        task=record.task,
        status=record.status,
        turn=record.turn,
        call=call,
        started=datetime.fromtimestamp(record.started, UTC),
        question=record.question,
        message=record.message,
    )


def _read(held: _Entries, kind: Any, key: str | None) -> Any:
    return None if key is None else read_record(kind, held.entry(key), key)


def record_of(state: Any, run_id: str) -> tuple[RunRecord, Mapping[str, Any]]:
    """Return the record of a run, and the entry that it is in.

    Raises:
        StateError: the state has no such run.
        StateCorrupt: it is damaged.
    """
    held = _require_entries(state)
    entry = held.entry(run_id) if "/" not in run_id else None
    if entry is None:
        raise StateError(f"There is no run {run_id!r} in this state; agex.runs(state) lists those there are.")
    return _record(held, run_id), entry


def _call(held: _Entries, key: str) -> tuple[str, KnownCall]:
    return known_call(held.entry(key), key)


def _inputs(held: _Entries, key: str | None) -> Mapping[str, Any]:
    return {} if key is None else named_inputs(held.entry(key), key)


def named_inputs(found: Any, key: str) -> Mapping[str, Any]:
    """Return the inputs of an entry by their names, without those that could not be kept.

    Raises:
        StateCorrupt: it is no such entry.
    """
    entry = {} if found is None else found
    if type(entry) is not dict or not all(type(name) is str and name.startswith("=") for name in entry):
        raise StateCorrupt(f"The entry {key!r} holds no inputs")
    return {
        name.removeprefix("="): value for name, value in entry.items() if type(value) is not values.NotKept
    }
