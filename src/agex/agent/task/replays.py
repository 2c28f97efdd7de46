"""Replays of a run that a state has: it is run again, and compared with what is recorded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agex.agent.base import resolved_models, sandbox_of
from agex.agent.call.events import (
    ActionEvent,
    ClarifyEvent,
    Event,
    FailEvent,
    OutputEvent,
    SuccessEvent,
)
from agex.agent.call.options import CallOptions
from agex.agent.durable.past_runs import past_run
from agex.agent.execution.grants import host_classes
from agex.agent.tape.redaction import matches
from agex.agent.task.invocation import Invocation
from agex.agent.task.run import Run
from agex.agent.task.taping import Again
from agex.contract import preview, same_value
from agex.errors import AgexError, DefinitionError, ModelNotConfigured, ReplayMismatch
from agex.models.base import Model, OnText, Profile, Reply, Request
from agex.sandbox import KeptCode
from agex.state import Versioned

if TYPE_CHECKING:
    from agex.agent.task.task import AnyTask

__all__ = ["Difference", "Replay", "Replaying"]

SHOWN_CHARS = 500
"""Of each side of a difference."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first place at which a replay differs from the run."""

    turn: int
    line: int | None
    """Of the action's code, where a call differs."""
    what: str
    """``answer``, ``output``, ``call``, ``value`` or ``end``."""
    expected: str
    got: str

    def __str__(self) -> str:
        where = f"turn {self.turn}" + (f", line {self.line}" if self.line else "")
        return f"{where}, {self.what}\nexpected: {self.expected}\ngot:      {self.got}"


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The outcome of a replay."""

    same: bool
    """Whether it did and gave the same."""
    first_difference: Difference | None
    run: Run[Any]
    """The run that was made."""


class _KeptModel(Model):
    """Gives the answers again that are in the events of a run, in their order."""

    def __init__(self, like: tuple[str, str, Profile], answers: deque[ActionEvent]) -> None:
        self.provider, self.name, self.profile = like
        self._answers = answers

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the next answer."""
        if not self._answers:
            raise ReplayMismatch("The run asked its model once more.", "no further request", "a request")
        one = self._answers.popleft()
        return Reply(text=one.text, actions=one.actions, truncated=one.truncated, usage=one.usage)


class Replaying:
    """A replay of one run.

    Args:
        task: whose run it is.
        state: that has it.
        run_id: the run.
        model: is asked in the place of the recorded answers; None for those.
        inputs: in the place of those that the state could not keep.

    Raises:
        DefinitionError: it is a run of another task, or an input is missing.
        StateError: the state does not have it.
    """

    def __init__(
        self,
        task: AnyTask[Any, Any],
        state: Any,
        run_id: str,
        model: Any = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(state, Versioned):
            raise DefinitionError("A run is replayed from a Versioned state, and this one had none.")
        agent, self._signature = task.agent, task.definition.terms.signature
        state.admit(
            host_classes(agent.registrations, self._signature), KeptCode(sandbox_of(agent, self._signature))
        )
        self._task = task
        self._state = state
        self._past = past = past_run(state, run_id)
        if past.record.task != task.__name__:
            raise DefinitionError(f"Run {run_id} is one of task {past.record.task!r}, not {task.__name__!r}.")
        self._inputs = {**past.inputs, **(inputs or {})}
        missing = self._signature.parameters.keys() - self._inputs.keys()
        if missing:
            raise DefinitionError(
                f"The state could not keep the inputs {', '.join(sorted(missing))} of run {run_id}: "
                "give them again, replay(inputs={...})."
            )
        self._models = self._kept_models() if model is None else self._given_model(model)

    def _kept_models(self) -> tuple[Model, ...]:
        answers = deque(one for one in self._past.events if isinstance(one, ActionEvent) and one.turn)
        try:
            likes = [(one.provider, one.name, one.profile) for one in resolved_models(self._task.agent)]
        except ModelNotConfigured:
            likes = [("recorded", "model", Profile())]
        return tuple(_KeptModel(like, answers) for like in likes)

    def _given_model(self, model: Any) -> tuple[Model, ...]:
        from agex.models.resolve import resolve_model

        return (resolve_model(model),)

    @contextmanager
    def _branch(self) -> Iterator[Versioned]:
        """Work on a branch that begins where the run began, and is gone afterwards."""
        if self._past.start is None:
            yield Versioned()
            return
        fork = self._state.fork(f"replay-{uuid4().hex[:12]}", at=self._past.start)
        try:
            yield fork
        finally:
            self._state.delete_branch(fork.branch)

    def _invocation(self, state: Versioned, loop: asyncio.AbstractEventLoop | None) -> Invocation:
        return Invocation(
            self._task.agent,
            self._task.definition,
            (),
            {},
            CallOptions(state=state),
            loop=loop,
            inputs=self._inputs,
            again=Again(models=self._models, calls=self._past.calls),
        )

    def run(self) -> Replay:
        """Carry it out in this thread."""
        if self._signature.is_async:
            return asyncio.run(self.arun())
        with self._branch() as state:
            made = self._invocation(state, None)
            error: AgexError | None = None
            try:
                made.run()
            except AgexError as ended:
                error = ended
        return self._compared(made.record, error)

    async def arun(self) -> Replay:
        """Carry it out without blocking the event loop."""
        with self._branch() as state:
            made = self._invocation(state, asyncio.get_running_loop() if self._signature.is_async else None)
            error: AgexError | None = None
            try:
                await made.arun()
            except AgexError as ended:
                error = ended
        return self._compared(made.record, error)

    def _compared(self, run: Run[Any], error: AgexError | None) -> Replay:
        own = (event for event in run.events if event.run_id == run.run_id)
        found = _first_difference(_steps(self._past.events), _steps(own))
        if isinstance(error, ReplayMismatch):
            other = _of_error(error, run.turns)
            found = found if found is not None and found.turn < other.turn else other
        elif found is None:
            found = self._other_end(run, error)
        return Replay(same=found is None, first_difference=found, run=run)

    def _other_end(self, run: Run[Any], error: AgexError | None) -> Difference | None:
        past = self._past
        if past.record.status == "done" and error is not None:
            got = f"{type(error).__name__}: {error}"
            return Difference(turn=run.turns, line=None, what="end", expected="a value", got=got)
        if past.has_value and error is None and not same_value(run.value, past.value):
            expected, got = preview(past.value, SHOWN_CHARS), preview(run.value, SHOWN_CHARS)
            return Difference(turn=run.turns, line=None, what="value", expected=expected, got=got)
        return None


_Step = tuple[int, str, str]
"""The turn, the kind, and the text of something that happened."""


def _steps(events: Iterable[Event]) -> list[_Step]:
    found: list[_Step] = []
    for event in events:
        match event:
            case ActionEvent():
                found.append((event.turn, "answer", event.summary()))
            case OutputEvent():
                found.append((event.turn, "output", event.text))
            case SuccessEvent():
                found.append((event.turn, "value", str(event.model_dump(mode="json")["result"])))
            case FailEvent() | ClarifyEvent():
                found.append((event.turn, "end", event.message))
            case _:
                pass
    return found


def _first_difference(expected: list[_Step], got: list[_Step]) -> Difference | None:
    for was, now in zip(expected, got, strict=False):
        if was[:2] != now[:2] or not matches(was[2], now[2]):
            return _difference(was, now)
    rest = expected[len(got) :]
    return _difference(rest[0], None) if rest else None


def _difference(was: _Step, now: _Step | None) -> Difference:
    turn, kind, text = was
    came = (turn, kind, "the end") if now is None else now
    got = came[2] if came[1] == kind else f"{came[1]}: {came[2]}"
    return Difference(turn=turn, line=None, what=kind, expected=text[:SHOWN_CHARS], got=got[:SHOWN_CHARS])


def _of_error(error: ReplayMismatch, turns: int) -> Difference:
    turn = turns if error.turn is None else error.turn
    return Difference(turn=turn, line=error.line, what="call", expected=error.expected, got=error.got)
