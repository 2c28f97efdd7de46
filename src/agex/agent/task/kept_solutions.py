"""Code that solved a task, from call to call: found, used, replaced, and what became of it.

It is kept with a ``Versioned`` state, in the commit that ends the run; else in memory, with the task.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agex.agent.call.events import ActionEvent, Event
from agex.agent.durable.solution_entries import (
    Entries,
    MemoryEntries,
    SolutionRecord,
    SolvedCall,
    StateEntries,
    Stored,
    key_of,
)
from agex.agent.task.solution_terms import differences
from agex.agent.task.value_source import source_or_none
from agex.state import State

if TYPE_CHECKING:
    from agex.state.working.view import RunLog

__all__ = ["Ended", "Keeping", "KeptSolution", "SolutionStore", "SolvedBy", "SolvedWith"]

Keeping: TypeAlias = "Callable[..., KeptSolution]"
"""Returns the solution that a call begins with; given its state, the log of that, and the inputs, and
``sample=`` for one of its samples. See `SolutionStore.begin`."""

SolvedWith: TypeAlias = Literal["solution", "kept", "model"]
FAILURE_CHARS = 1_000
"""Of why kept code did not solve a call."""


@dataclass(frozen=True, kw_only=True)
class SolvedBy:
    """How many calls of a task were solved by what, in this process."""

    solution: int = 0
    """By the function that ``solution=`` names."""
    kept: int = 0
    """By code that was kept from an earlier call."""
    model: int = 0
    """By a model."""


class SolutionStore:
    """The solutions of one task, wherever its calls keep them; shared by all that ``using`` makes of it.

    Args:
        task: its name.
    """

    def __init__(self, task: str) -> None:
        self.task = task
        self._memory = MemoryEntries()
        self._last: State | None = None
        self._counts: dict[SolvedWith, int] = {"solution": 0, "kept": 0, "model": 0}
        self._lock = threading.Lock()

    def begin(
        self,
        terms: Mapping[str, str],
        state: State | None,
        log: RunLog | None,
        inputs: Mapping[str, Any],
        *,
        sample: int | None = None,
    ) -> KeptSolution:
        """Return the solution for a call that begins, or for one of the samples of a call.

        Raises:
            StateCorrupt: the state's entry is damaged.
        """
        if sample is None:
            self.begins(state)
        return KeptSolution(self._memory if log is None else log, self.task, terms, inputs, sample)

    def begins(self, state: State | None) -> None:
        """Take note of the state of a call."""
        self._last = state

    def current(self, state: State | None, terms: Mapping[str, str]) -> SolutionRecord | None:
        """Return the solution that the next call would use.

        Raises:
            StateCorrupt: the state's entry is damaged.
        """
        return self.stored(state).read(key_of(terms))

    def stored(self, state: State | None) -> Stored:
        """Return the solutions in a state, or in memory where it keeps none."""
        entries = StateEntries(state) if hasattr(state, "entry_keys") else self._memory
        return Stored(entries, self.task)

    @property
    def last_state(self) -> State | None:
        """The state of the last call."""
        return self._last

    @property
    def counts(self) -> SolvedBy:
        """How many calls were solved by what."""
        with self._lock:
            return SolvedBy(**self._counts)

    def count(self, how: SolvedWith) -> None:
        """Take note that a call was solved."""
        with self._lock:
            self._counts[how] += 1


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a call ended, for the solution that was tried or found."""

    source: str | None
    """The code of the task's own function, if that ended it."""
    failure: str | None
    """Why the kept code did not solve it; None where it was not tried, or did."""
    run_id: str
    events: tuple[Event, ...]
    value: Any = None
    is_built: bool = False
    """Whether the contract built the value out of another that the function returned."""

    @property
    def model(self) -> str:
        """The model that answered last; empty where none was asked."""
        answers = (one for one in reversed(self.events) if type(one) is ActionEvent)
        return next((one.model for one in answers if one.run_id == self.run_id), "")


class KeptSolution:
    """The solution that one call finds, and what it leaves.

    Args:
        entries: where solutions are kept.
        task: the task's name.
        terms: of this call.
        inputs: by name, as they are before any code runs.
        sample: which sample of the call it is, if it has some: 0 tries the code that is kept, those from 1
            write their own. What that leaves in memory is put when the sample is chosen; a state has a
            fork for each.
    """

    def __init__(
        self,
        entries: Entries | RunLog,
        task: str,
        terms: Mapping[str, str],
        inputs: Mapping[str, Any],
        sample: int | None = None,
    ) -> None:
        self._sample = sample
        self._ended: Ended | None = None
        self._entries = entries
        self._stored = Stored(entries, task)
        self._task = task
        self._terms = dict(terms)
        self._key = key_of(terms)
        self._found = self._stored.read(self._key)
        self._inputs = _kept_inputs(inputs)

    @property
    def code(self) -> str | None:
        """The code to try first."""
        return None if self._found is None or self._sample else self._found.source

    @property
    def note(self) -> str:
        """Why code that solved the task before is not used; empty where it is, or there is none."""
        if self._found is not None or self._sample is not None:
            return ""
        other = next(iter(self._stored.all()), None)
        if other is None:
            return ""
        return (
            f"The code kept from run {other.run_id} is not used, for it was written for other terms: "
            f"{differences(other.terms, self._terms)}."
        )

    @contextmanager
    def left(self, ended: Ended) -> Iterator[None]:
        """Put what the call leaves, and hold others off until it is committed."""
        if self._sample and isinstance(self._entries, MemoryEntries):
            self._ended = ended
            yield
            return
        with self._entries.held():
            self._put(ended)
            yield

    def choose(self) -> None:
        """Put what a sample left, for it is the chosen one."""
        if self._ended is not None:
            with self._entries.held():
                self._put(self._ended)

    def _put(self, ended: Ended) -> None:
        record = self._stored.read(self._key)
        if record is not None and ended.failure is not None:
            record = record.model_copy(
                update={"failed": record.failed + 1, "last_failure": ended.failure[:FAILURE_CHARS]}
            )
        if ended.source is not None and ended.model:
            record = SolutionRecord(
                task=self._task,
                source=ended.source,
                model=ended.model,
                run_id=ended.run_id,
                created=time.time(),
                version=version("agex-py"),
                is_built=ended.is_built,
                terms=self._terms,
            )
            self._put_calls([], ended.value)
        elif record is not None and ended.source == record.source:
            record = record.model_copy(
                update={"used": record.used + 1, "is_built": record.is_built or ended.is_built}
            )
            self._put_calls(self._stored.calls(self._key), ended.value)
        elif ended.failure is None:
            return
        if record is not None:
            self._stored.write(record)

    def _put_calls(self, before: list[SolvedCall], value: Any) -> None:
        """Put this call with those before it, if it can be written out and is none of them."""
        calls = list(before)
        if self._inputs is not None and source_or_none(value) is not None:
            known = {source_or_none(dict(one.inputs)) for one in calls}
            if source_or_none(self._inputs) not in known:
                calls.append(SolvedCall(self._inputs, copy.deepcopy(value)))
        if len(calls) != len(before) or not before:
            self._stored.write_calls(self._key, calls)


def _kept_inputs(inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a copy of inputs that can be written out; None for others."""
    own = dict(inputs)
    return copy.deepcopy(own) if source_or_none(own) is not None else None
