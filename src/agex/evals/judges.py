"""Judges: their arguments, and their answers as verdicts."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agex.agent import AsyncTask, Run, Task
from agex.contract import same_value, short_repr
from agex.contract.real_types import is_subclass, numpy_number
from agex.errors import DefinitionError
from agex.evals.case import NOTHING, Case

__all__ = ["Judge", "Seen", "Verdict", "ask", "equals", "named_judges", "require_can_judge"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judge's answer beyond yes or no."""

    passed: bool
    score: float | None = None
    """How good it is, on any scale; a report gives the mean."""
    reason: str = ""

    def __post_init__(self) -> None:
        # A judge that is a task returns one, too: no object of a class that its agent wrote stays in it.
        if type(self.passed) is not bool:
            raise DefinitionError(f"Verdict(passed={short_repr(self.passed)}): give True or False.")
        if self.score is not None:
            object.__setattr__(self, "score", _number(self.score))
        if not is_subclass(type(self.reason), str):
            raise DefinitionError(f"Verdict(reason={short_repr(self.reason)}): give a text.")
        object.__setattr__(self, "reason", str.__str__(self.reason))


def _number(score: Any) -> float:
    number = numpy_number(score)
    score = score if number is None else number
    for base, plain in ((float, float.__float__), (int, int.__int__)):
        if is_subclass(type(score), base) and type(score) is not bool and math.isfinite(plain(score)):
            return plain(score)
    raise DefinitionError(f"Verdict(score={short_repr(score)}): give a finite number or None.")


Judge: TypeAlias = Callable[..., Any]
"""A function, or a task, that returns True, False or a `Verdict`.

It is given what its parameters name: ``value``, ``expected``, ``inputs`` (all of them), ``run`` (the
`agex.Run`, None where there is none), ``case``, or an input by that input's own name. A first parameter
of any other name is the value.
"""


def equals(value: Any, expected: Any) -> bool:
    """Return whether a value is the expected one: NaN equals NaN, True is not 1, tables have a rule."""
    return same_value(value, expected)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A trial as judges see it."""

    case: Case
    value: Any = None
    run: Run[Any] | None = None

    def by_name(self) -> dict[str, Any]:
        """Return it under the names that a judge's parameters may have."""
        own = {"value": self.value, "run": self.run, "case": self.case, "inputs": self.case.inputs}
        expected = {} if self.case.expected is NOTHING else {"expected": self.case.expected}
        return {**self.case.inputs, **own, **expected}


def named_judges(judge: Judge | Iterable[Judge]) -> dict[str, Judge]:
    """Return judges by name, each of its own.

    Raises:
        DefinitionError: there is none, or one cannot be called.
    """
    judges: list[Any] = [judge] if callable(judge) else list(judge)
    if not judges:
        raise DefinitionError("There is no judge; give a function of the value that returns True or False.")
    named: dict[str, Judge] = {}
    for each in judges:
        if not callable(each) or (inspect.iscoroutinefunction(each) and not isinstance(each, AsyncTask)):
            raise DefinitionError(
                f"{each!r} cannot judge; give a task, or a function (def, not async def) of the value."
            )
        name = str(getattr(each, "__name__", type(each).__name__))
        also = sum(1 for known in named if known.split(" ")[0] == name)
        named[f"{name} {also + 1}" if also else name] = each
    return named


def require_can_judge(judges: Mapping[str, Judge], case: Case) -> None:
    """Require that a case has all arguments that the judges ask for.

    Raises:
        DefinitionError: a judge cannot be given its arguments.
    """
    for name, judge in judges.items():
        _arguments(name, judge, Seen(case=case))


def ask(name: str, judge: Judge, seen: Seen) -> Verdict:
    """Ask a judge.

    Raises:
        DefinitionError: what it returned is no verdict.
        BaseException: any exception of the judge.
    """
    args, kwargs = _arguments(name, judge, seen)
    if isinstance(judge, Task | AsyncTask):
        return _verdict(name, judge.run(*args, **kwargs).value)
    return _verdict(name, judge(*args, **kwargs))


def _arguments(name: str, judge: Judge, seen: Seen) -> tuple[list[Any], dict[str, Any]]:
    try:
        parameters = list(inspect.signature(judge).parameters.values())
    except ValueError:  # written in C, without a signature
        return [seen.value], {}
    known = seen.by_name()
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for position, one in enumerate(parameters):
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        is_value = position == 0 and one.name not in known and one.kind is not one.KEYWORD_ONLY
        if is_value and one.name != "expected":
            args.append(seen.value)
        elif one.kind is one.POSITIONAL_ONLY and one.name in known:
            args.append(known[one.name])
        elif one.name in known:
            kwargs[one.name] = known[one.name]
        elif one.default is one.empty:
            raise DefinitionError(
                f"The judge {name!r} asks for {one.name!r}, which case {seen.case.name!r} does not have; "
                f"there are: {', '.join(known)}."
            )
    return args, kwargs


def _verdict(name: str, answer: Any) -> Verdict:
    """Read a judge's answer; nothing that only counts as true counts."""
    if type(answer) is Verdict:
        return answer
    numpy: Any = sys.modules.get("numpy")
    if type(answer) is bool or (numpy is not None and type(answer) is numpy.bool_):
        return Verdict(passed=bool(answer))
    raise DefinitionError(
        f"The judge {name!r} returned {short_repr(answer)}; return True, False or a Verdict, "
        "e.g. bool(...) around what only counts as true."
    )
