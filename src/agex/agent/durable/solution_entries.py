"""Solutions of tasks as they are kept: beside the variables of a state, or in memory where there is none.

::

    solution/TASK/KEY          SolutionRecord
    solution/TASK/KEY/calls    calls that it solved, each with its inputs and its value

KEY is the digest of the terms that the code was written for. The source is guest code: it
runs where the code of the model runs, and its result is held to the same contract.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from pydantic import Field

from agex import values
from agex.agent.durable.records import Record, read_record, written
from agex.errors import StateCorrupt

__all__ = ["Entries", "MemoryEntries", "Solution", "SolutionRecord", "SolvedCall", "StateEntries", "Stored"]

MOST_SOLUTIONS = 8
"""Of one task in one state, each for other terms."""
LAST_DATE = 253_402_300_800
"""The year 10000 in seconds since the epoch, which `datetime` does not know."""
MOST_CALLS = 10
"""Calls that are kept with a solution."""


@dataclass(frozen=True, kw_only=True)
class Solution:
    """The code that solved a task by defining the task's own function."""

    task: str
    source: str
    """The function, with the imports and definitions that it needs."""
    model: str
    """The model that wrote it: ``"provider:name"``."""
    run_id: str
    """The run that it ended."""
    created: datetime
    version: str
    """The version of agex then."""
    used: int = 0
    """How often it solved a later call."""
    failed: int = 0
    """How often it did not, so that the model was asked."""
    last_failure: str = ""
    """Why it did not the last time; empty if it always did."""


class SolutionRecord(Record):
    """A solution, but for the calls that it solved."""

    task: str
    source: str
    model: str = ""
    run_id: str = ""
    created: float = Field(allow_inf_nan=False, ge=0, lt=LAST_DATE)
    version: str = ""
    used: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)
    last_failure: str = ""
    is_built: bool = False
    """Whether the contract built the value out of another that the function returned."""
    terms: dict[str, str]
    """Digests of what the code was written for, by name."""

    @property
    def key(self) -> str:
        """The digest of the terms."""
        return key_of(self.terms)

    def solution(self) -> Solution:
        """Return it as the host is shown it."""
        fields = self.model_dump(exclude={"terms", "created", "is_built"})
        return Solution(**fields, created=datetime.fromtimestamp(self.created, UTC))


@dataclass(frozen=True)
class SolvedCall:
    """A call that a solution solved."""

    inputs: Mapping[str, Any]
    value: Any


def key_of(terms: Mapping[str, str]) -> str:
    """Return the digest of terms."""
    return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()[:32]


class Entries(Protocol):
    """Where solutions are kept."""

    def put(self, key: str, value: Any) -> tuple[Any, ...]: ...

    def remove(self, key: str) -> None: ...

    def read(self, key: str) -> Any: ...

    def keys(self, prefix: str) -> list[str]: ...

    def held(self) -> AbstractContextManager[Any]:
        """Keep others from reading and writing meanwhile."""
        ...


class MemoryEntries:
    """Entries that live as long as their task."""

    def __init__(self) -> None:
        self._entries: dict[str, Any] = {}
        self._lock = threading.RLock()

    def put(self, key: str, value: Any) -> tuple[Any, ...]:
        """Put an entry."""
        with self._lock:
            self._entries[key] = value
        return ()

    def remove(self, key: str) -> None:
        """Take an entry away."""
        with self._lock:
            self._entries.pop(key, None)

    def read(self, key: str) -> Any:
        """Return an entry; None where there is none."""
        with self._lock:
            return self._entries.get(key)

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin so, sorted."""
        with self._lock:
            return sorted(key for key in self._entries if key.startswith(prefix))

    def held(self) -> AbstractContextManager[Any]:
        """Keep others from reading and writing meanwhile."""
        return self._lock


class StateEntries:
    """The entries in the head of a `Versioned` state, to be read."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def read(self, key: str) -> Any:
        """Return an entry; None where there is none."""
        return self._state.entry(key)

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin so, sorted."""
        return [key for key in self._state.entry_keys() if key.startswith(prefix)]


class Stored:
    """The solutions of one task in some entries.

    Args:
        entries: to read, and to write if the caller does.
        task: its name.
    """

    def __init__(self, entries: Any, task: str) -> None:
        self._entries: Entries = entries
        self._task = task

    def read(self, key: str) -> SolutionRecord | None:
        """Return the solution for terms with this digest; None where there is none.

        Raises:
            StateCorrupt: the entry is none, or says that it is of another task or for other terms.
        """
        place = self._place(key)
        entry = self._entries.read(place)
        if entry is None:
            return None
        record = read_record(SolutionRecord, entry, place)
        if (record.task, record.key) != (self._task, key):
            raise StateCorrupt(f"The entry {place!r} is a solution of another task, or for other terms")
        return record

    def all(self) -> list[SolutionRecord]:
        """Return all of them, newest first.

        Raises:
            StateCorrupt: an entry is none.
        """
        names = [key.removeprefix(self._place("")) for key in self._entries.keys(self._place(""))]
        found = [record for name in names if "/" not in name and (record := self.read(name)) is not None]
        return sorted(found, key=lambda one: (one.created, one.run_id), reverse=True)

    def calls(self, key: str) -> list[SolvedCall]:
        """Return the calls that are kept with a solution, oldest first.

        Raises:
            StateCorrupt: the entry holds none.
        """
        place = self._place(key, "calls")
        entry = self._entries.read(place)
        if entry is None:
            return []
        if type(entry) is not list or not all(map(_is_call, entry)):
            raise StateCorrupt(f"The entry {place!r} holds no calls of a task")
        return [SolvedCall(inputs, value) for inputs, value in entry if not _is_lost(inputs, value)]

    def write(self, record: SolutionRecord) -> None:
        """Put a solution; the oldest of too many goes."""
        place = self._place(record.key)
        is_new = self._entries.read(place) is None
        self._entries.put(place, written(record))
        others = [one.key for one in self.all() if one.key != record.key] if is_new else []
        for key in others[MOST_SOLUTIONS - 1 :]:
            self._drop(key)

    def write_calls(self, key: str, calls: list[SolvedCall]) -> None:
        """Put the calls of a solution; the first ones, of too many."""
        kept = [(dict(one.inputs), one.value) for one in calls[:MOST_CALLS]]
        self._entries.put(self._place(key, "calls"), kept)

    def _drop(self, key: str) -> None:
        place = self._place(key)
        for each in (place, *self._entries.keys(f"{place}/")):
            self._entries.remove(each)

    def _place(self, *parts: str) -> str:
        return "/".join(("solution", self._task, *parts))


def _is_call(entry: Any) -> bool:
    return (
        type(entry) is tuple
        and len(entry) == 2
        and type(entry[0]) is dict
        and all(type(name) is str for name in entry[0])
    )


def _is_lost(inputs: Mapping[str, Any], value: Any) -> bool:
    """Return whether a part of a call could not be kept."""
    return any(type(one) is values.NotKept for one in (*inputs.values(), value))
