"""One trial: a subject's outcome for one case, and the judges' verdicts on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agex.agent import AsyncTask, Run, Task
from agex.agent.call.call import sharing
from agex.contract import short_repr
from agex.contract.real_types import class_name, is_subclass
from agex.errors import (
    AgexError,
    BudgetExceeded,
    ModelNotConfigured,
    TaskClarify,
    TaskFail,
    TaskTimeout,
    TieError,
)
from agex.evals.case import Case
from agex.evals.judges import Judge, Seen, Verdict, ask, equals, named_judges
from agex.models import Usage

__all__ = ["Outcome", "Status", "Subject", "Trial", "attempt", "raised_is"]

Status: TypeAlias = Literal["passed", "failed", "error", "stopped"]
"""``passed``: every judge said yes. ``failed``: one said no, or the task ended without a value by its own
doing: it gave up, asked back, was out of turns or of its own budget, or its samples tied. ``error``:
something else was raised, by what is tried or by a judge. ``stopped``: the budget of the whole evaluation was
used up."""

Subject: TypeAlias = Task[..., Any] | AsyncTask[..., Any] | Callable[..., Any]
"""The subject: a task, or a function of the inputs that returns a value, an `agex.Run` or an `Outcome`."""

_ENDS_ALL = (KeyboardInterrupt, ModelNotConfigured)
"""Exceptions that end the evaluation, not one trial. Guest code cannot raise these."""
_OWN_DOING = (TaskFail, TaskClarify, TaskTimeout, TieError)
_REASON_CHARS = 500
_args = vars(BaseException)["args"].__get__


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a function that has more to return than a value."""

    value: Any
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    """Of requests that no task made; what tasks use is counted anyway."""
    run: Run[Any] | None = None
    """For judges."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The record of one trial."""

    case: Case
    number: int = 1
    """Which of the trials of its case, from 1."""
    status: Status
    reason: str = ""
    """Why it did not pass, in one line."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Each judge's verdict, by the judge's name."""
    value: Any = None
    """The value that the subject returned."""
    run: Run[Any] | None = None
    """The run of the task, with its events; None where no task was tried."""
    exception: BaseException | None = None
    """The exception that was raised."""
    turns: int = 0
    """Of the task's own model."""
    usage: Usage = field(default_factory=Usage)
    """Of all requests of what is tried."""
    judging: Usage = field(default_factory=Usage)
    """Of all requests of judges."""
    seconds: float = 0.0
    """Wall seconds, without the judges'."""

    @property
    def score(self) -> float | None:
        """The mean of the scores that judges gave; None where none did."""
        scores = [each.score for each in self.verdicts.values() if each.score is not None]
        return sum(scores) / len(scores) if scores else None


def attempt(
    subject: Subject, case: Case, *, judge: Judge | Iterable[Judge] = equals, number: int = 1
) -> Trial:
    """Try one case once, in this thread; an exception becomes part of the trial.

    Args:
        subject: what is tried.
        case: its inputs, and what is expected.
        judge: one or several; all have to say yes.
        number: which of the trials of its case it is.

    Raises:
        DefinitionError: something given is no judge.
        ModelNotConfigured: there is no model to ask.
    """
    judges = named_judges(judge)
    made = _performed(subject, case)
    common: dict[str, Any] = {
        "case": case,
        "number": number,
        "value": made.outcome.value,
        "run": made.outcome.run,
        "turns": made.outcome.turns,
        "usage": made.usage,
        "seconds": made.seconds,
    }
    if made.error is not None:
        status: Status = "failed" if raised_is(made.error, *_OWN_DOING) else "error"
        return Trial(**common, status=status, reason=said_by(made.error), exception=made.error)
    seen = Seen(case=case, value=made.outcome.value, run=made.outcome.run)
    verdicts: dict[str, Verdict] = {}
    with sharing() as ledger:
        judged = _judged(judges, seen, verdicts)
    return Trial(**common, **judged, verdicts=verdicts, judging=ledger.used)


@dataclass(frozen=True, kw_only=True)
class _Performed:
    outcome: Outcome
    usage: Usage
    seconds: float
    error: BaseException | None = None


def _performed(subject: Subject, case: Case) -> _Performed:
    """Call the subject with the inputs of a case."""
    outcome = Outcome(value=None)
    raised: BaseException | None = None
    started = time.perf_counter()
    with sharing() as ledger:
        try:
            outcome, raised = _outcome(subject, case)
        except BaseException as error:
            # Code that an agent wrote may raise what is no Exception.
            if raised_is(error, *_ENDS_ALL):
                raise
            raised = error
            run = error.run if raised_is(error, AgexError) else None  # type: ignore[attr-defined]
            if run is not None:
                outcome = _of_run(run)
        seconds = time.perf_counter() - started
        try:
            ledger.charge(outcome.usage)
        except BudgetExceeded as error:
            raised = raised or error
    return _Performed(outcome=outcome, usage=ledger.used, seconds=seconds, error=raised)


def _outcome(subject: Subject, case: Case) -> tuple[Outcome, BaseException | None]:
    if isinstance(subject, Task | AsyncTask):
        return _of_run(subject.run(**case.inputs)), None
    returned = subject(**case.inputs)
    if type(returned) is Outcome:
        return returned, None
    if is_subclass(type(returned), Run):
        return _of_run(returned), returned.error
    return Outcome(value=returned), None


def _of_run(run: Run[Any]) -> Outcome:
    return Outcome(value=run.value, turns=run.turns, run=run)


def _judged(judges: Mapping[str, Judge], seen: Seen, verdicts: dict[str, Verdict]) -> dict[str, Any]:
    """Ask the judges, put their answers into *verdicts*, and return the status."""
    for name, judge in judges.items():
        try:
            verdicts[name] = ask(name, judge, seen)
        except BaseException as error:
            if raised_is(error, *_ENDS_ALL):
                raise
            return {
                "status": "error",
                "reason": f"the judge {name!r}: {said_by(error)}",
                "exception": error,
            }
    against = {name: each for name, each in verdicts.items() if not each.passed}
    if not against:
        return {"status": "passed"}
    reasons = [f"the judge {name!r}: {each.reason or 'no'}" for name, each in against.items()]
    return {"status": "failed", "reason": "; ".join(reasons)}


def raised_is(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    """Return whether an error is of one of some classes, ignoring its ``__class__``."""
    return any(is_subclass(type(error), kind) for kind in kinds)


def said_by(error: BaseException) -> str:
    """Write an exception in one line, without running code of the agent that it may contain."""
    args = _args(error)
    is_text = len(args) == 1 and is_subclass(type(args[0]), str)
    text = str.__str__(args[0]) if is_text else short_repr(args, _REASON_CHARS) if args else ""
    return " ".join(f"{class_name(type(error))}: {text}".split()).removesuffix(":")
