"""The evaluation of all cases: several trials of each, several at once, within a budget."""

from __future__ import annotations

import contextvars
import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from agex.agent import AsyncTask, Budget, Task
from agex.agent.call.budget import Ledger
from agex.agent.call.call import sharing
from agex.errors import BudgetExceeded, DefinitionError, InputError
from agex.evals.case import Case, CaseLike, as_cases
from agex.evals.judges import Judge, equals, named_judges, require_can_judge
from agex.evals.report import Report
from agex.evals.summary import wilson_interval
from agex.evals.trial import Subject, Trial, attempt, raised_is

__all__ = ["evaluate"]

_Place: TypeAlias = tuple[int, int]
"""Of a trial: the position of its case, and which trial of it."""


def evaluate(
    subject: Subject,
    cases: Iterable[CaseLike],
    *,
    judge: Judge | Iterable[Judge] = equals,
    trials: int = 1,
    max_concurrency: int = 1,
    budget: Budget | None = None,
    confidence: float = 0.95,
    name: str | None = None,
    on_trial: Callable[[Trial], object] | None = None,
) -> Report:
    """Try every case some number of times and let judges decide which trials passed.

    All cases are tried once before any is tried again, so that a budget that is used up leaves them
    evenly tried. Everything given is checked before a model is asked.

    Args:
        subject: a task, or a function of the inputs that returns a value, an `agex.Run` or an `Outcome`.
        cases: what to try: `Case`, or mappings with its fields.
        judge: one or several, see `Judge`; all have to say yes. By default the value must be the expected.
        trials: of each case.
        max_concurrency: how many trials at once, each in a thread; 1 for this thread only.
        budget: of all trials together, judges included. Once it is used up no request is sent any
            more: what is under way is stopped, the rest is not begun. A task's own budget holds for each
            of its trials as ever.
        confidence: of the intervals.
        name: of the report; the subject's own by default.
        on_trial: told each trial when it is over, in this thread.

    Returns:
        The trials in the order of the cases, whatever the order they ended in.

    Raises:
        DefinitionError: something given cannot work.
        InputError: the inputs of a case do not fit the task.
        ModelNotConfigured: the task has no model to ask.
    """
    tried = as_cases(cases)
    judges = named_judges(judge)
    for label, number in (("trials", trials), ("max_concurrency", max_concurrency)):
        if type(number) is not int or number < 1:
            raise DefinitionError(f"{label}={number!r}: give a whole number from 1.")
    wilson_interval(0, 1, confidence)  # refuses what is no confidence
    for case in tried:
        require_can_judge(judges, case)
    _require_can_be_tried(subject, tried)
    model = _model_of(subject)
    found: dict[_Place, Trial] = {}
    started = time.perf_counter()
    with sharing(budget) as ledger:
        one = partial(_within, ledger, subject, tuple(judges.values()))
        places = [(position, number) for number in range(1, trials + 1) for position in range(len(tried))]
        for place, trial in _carried_out(one, places, tried, max_concurrency):
            found[place] = trial
            if on_trial is not None:
                on_trial(trial)
    return Report(
        name=name or str(getattr(subject, "__name__", type(subject).__name__)),
        model=model,
        cases=tried,
        trials=tuple(found[place] for place in sorted(found)),
        seconds=time.perf_counter() - started,
        max_concurrency=max_concurrency,
        confidence=confidence,
    )


def _carried_out(
    one: Callable[[Case, int], Trial], places: list[_Place], cases: tuple[Case, ...], max_concurrency: int
) -> Iterator[tuple[_Place, Trial]]:
    """Yield trials as they end."""
    if max_concurrency == 1:
        for position, number in places:
            yield (position, number), one(cases[position], number)
        return
    with ThreadPoolExecutor(max_concurrency, thread_name_prefix="agex trial") as pool:
        begun: dict[Future[Trial], _Place] = {
            pool.submit(contextvars.copy_context().run, one, cases[position], number): (position, number)
            for position, number in places
        }
        try:
            for future in as_completed(begun):
                yield begun[future], future.result()
        finally:
            for future in begun:
                future.cancel()


def _within(ledger: Ledger, subject: Subject, judges: tuple[Judge, ...], case: Case, number: int) -> Trial:
    """Try a case, if there is budget left; a trial that the shared budget ended did not fail."""
    spent = _spent(ledger)
    if spent is not None:
        return Trial(case=case, number=number, status="stopped", reason=str(spent))
    trial = attempt(subject, case, judge=judges, number=number)
    if raised_is(trial.exception, BudgetExceeded) and (spent := _spent(ledger)) is not None:
        return replace(trial, status="stopped", reason=str(spent))
    return trial


def _spent(ledger: Ledger) -> BudgetExceeded | None:
    try:
        ledger.admit()
    except BudgetExceeded as error:
        return error
    return None


def _require_can_be_tried(subject: Any, cases: tuple[Case, ...]) -> None:
    if not isinstance(subject, Task | AsyncTask):
        if not callable(subject) or inspect.iscoroutinefunction(subject):
            raise DefinitionError(
                f"{subject!r} cannot be tried; give a task, or a function (def, not async def)."
            )
        return
    if subject.state is not None:
        raise DefinitionError(
            f"{subject!r} has a state, in which each trial would find what others left. Give "
            "task.using(state=None), or a function that calls it with a state of its own, e.g. state=Live()."
        )
    if subject.definition.reuse:
        raise DefinitionError(
            f"{subject!r} keeps the code that solved it, so no trial after that would ask the model; "
            "declare it without reuse=True."
        )
    for case in cases:
        try:
            subject.definition.terms.signature.bind((), case.inputs)
        except InputError as error:
            raise InputError(f"case {case.name!r}: {error}") from None


def _model_of(subject: Any) -> str | None:
    if not isinstance(subject, Task | AsyncTask):
        return None
    model = subject.agent.resolved_model()
    return f"{model.provider}:{model.name}"
