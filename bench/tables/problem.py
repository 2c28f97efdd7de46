"""A problem: its declaration, its data, its reference solution, and the judge of a value."""

from __future__ import annotations

import datetime as dt
import inspect
import math
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Problem", "difference", "family"]

PUBLIC_SEED = 1
"""Of the data that problems may be tried with while they are written."""
HIDDEN_SEED = 7_919
"""Of the data that answers are judged on."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One function to be written."""

    family: str
    reference: FunctionType
    """The solution, with the signature and docstring that are shown."""
    make: Callable[[int], dict[str, Any]]
    """The inputs for a seed."""
    checks: tuple[Any, ...] = ()
    """Those that a user would write."""
    wrong: tuple[Callable[..., Any], ...] = ()
    """Plausible solutions that the judge must reject."""
    ordered: bool = False
    """Whether the order of a frame's rows counts."""

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.reference.__name__

    @property
    def source(self) -> str:
        """The signature and the docstring, as Python without a body."""
        head = inspect.getsource(self.reference).partition("def ")[2].partition(":\n")[0]
        doc = textwrap.indent(inspect.cleandoc(self.reference.__doc__ or "").replace("\\", "\\\\"), "    ")
        return f'def {head}:\n    """{doc.strip()}\n    """\n'

    def declaration(self) -> FunctionType:
        """Return the function without its body, in the place of the reference."""
        namespace: dict[str, Any] = {}
        code = compile(
            f"from __future__ import annotations\n{self.source}", f"<{self.name}>", "exec", dont_inherit=True
        )
        exec(code, namespace)  # noqa: S102 - the benchmark's own text
        made: FunctionType = namespace[self.name]
        return _moved(made, self)

    def judge(self, value: Any, seed: int = HIDDEN_SEED) -> str | None:
        """Return what is wrong with a value for the data of a seed, or None."""
        return difference(value, self.reference(**self.make(seed)), ordered=self.ordered)


def _moved(function: FunctionType, problem: Problem) -> FunctionType:
    """Return a function whose annotations mean what they mean where the reference stands."""
    moved = FunctionType(function.__code__, problem.reference.__globals__, problem.name)
    moved.__doc__ = function.__doc__
    moved.__annotations__ = dict(function.__annotations__)
    moved.__module__ = problem.reference.__module__
    return moved


def family(name: str, problems: list[Problem]) -> Callable[..., Callable[[FunctionType], FunctionType]]:
    """Return a decorator that makes a problem of its function and appends it to *problems*."""

    def problem(
        make: Callable[[int], dict[str, Any]],
        *,
        checks: Iterable[Any] = (),
        wrong: Iterable[Callable[..., Any]] = (),
        ordered: bool = False,
    ) -> Callable[[FunctionType], FunctionType]:
        def add(reference: FunctionType) -> FunctionType:
            problems.append(
                Problem(
                    family=name,
                    reference=reference,
                    make=make,
                    checks=tuple(checks),
                    wrong=tuple(wrong),
                    ordered=ordered,
                )
            )
            return reference

        return add

    return problem


# -- the judge -----------------------------------------------------------------------------------


def difference(value: Any, expected: Any, *, ordered: bool = False) -> str | None:
    """Return where a value differs from the expected one, or None.

    A frame has the same columns, in any order, and the same rows, in any order unless *ordered*; its index
    and its dtypes do not count. Numbers are equal to a millionth, missing values are equal, a date is equal
    to its midnight. Only values of plain classes, numpy's and pandas' are compared, so that no code of an
    answer runs.
    """
    if type(expected) is pd.DataFrame:
        return _frame(value, expected, ordered=ordered)
    if type(expected) is list:
        if type(value) is not list or len(value) != len(expected):
            return f"a list of {len(expected)} was expected, not {_shown(value)}"
        return _first(difference(a, b) for a, b in zip(value, expected, strict=True))
    if type(expected) is dict:
        return _mapping(value, expected)
    return None if _same(value, expected) else f"{_shown(value)} is not {_shown(expected)}"


def _first(found: Iterable[str | None]) -> str | None:
    return next((each for each in found if each is not None), None)


def _mapping(value: Any, expected: dict[Any, Any]) -> str | None:
    if type(value) is not dict or any(type(key) not in _PLAIN for key in value):
        return f"a dict was expected, not {_shown(value)}"
    if {_plain(key) for key in value} != set(expected):
        return f"the keys {_shown(list(expected))} were expected, not {_shown(list(value))}"
    own = {_plain(key): each for key, each in value.items()}
    return _first(difference(own[key], each) for key, each in expected.items())


def _frame(value: Any, expected: pd.DataFrame, *, ordered: bool) -> str | None:
    if type(value) is not pd.DataFrame:
        return f"a DataFrame was expected, not {_shown(value)}"
    names = list(expected.columns)
    if any(type(name) not in _PLAIN for name in value.columns) or sorted(map(str, value.columns)) != sorted(
        map(str, names)
    ):
        return f"the columns {names} were expected, not {_shown(list(value.columns))}"
    if len(value) != len(expected):
        return f"{len(expected)} rows were expected, not {len(value)}"
    own = value.set_axis([str(name) for name in value.columns], axis=1)
    rows = list(zip(*(own[str(name)].tolist() for name in names), strict=True))
    wanted = list(zip(*(expected[name].tolist() for name in names), strict=True))
    if not ordered:
        rows, wanted = sorted(rows, key=_row_key), sorted(wanted, key=_row_key)
    for number, (row, right) in enumerate(zip(rows, wanted, strict=True)):
        for name, cell, wish in zip(names, row, right, strict=True):
            if not _same(cell, wish):
                return f"{name!r} of row {number}: {_shown(cell)} is not {_shown(wish)}"
    return None


_PLAIN = (bool, int, float, str, type(None), dt.date, dt.datetime, dt.timedelta, pd.Timestamp, pd.Timedelta)
_SCALARS = (np.bool_, np.integer, np.floating)


def _plain(value: Any) -> Any:
    """Return a scalar as one of a plain class: missing as None, a date as its midnight, a number as such."""
    kind = type(value)
    if kind.__module__ == "numpy" and isinstance(value, _SCALARS):
        value = value.item()
        kind = type(value)
    if value is pd.NaT or value is pd.NA or (kind is float and math.isnan(value)):
        return None
    if kind in (pd.Timestamp, dt.datetime, dt.date):
        return pd.Timestamp(value)
    if kind in (pd.Timedelta, dt.timedelta):
        return pd.Timedelta(value)
    return value


def _same(value: Any, expected: Any) -> bool:
    value, expected = _plain(value), _plain(expected)
    if type(value) not in _PLAIN or type(expected) not in _PLAIN:
        return False
    if type(value) in (int, float) and type(expected) in (int, float):
        return math.isclose(value, expected, rel_tol=1e-6, abs_tol=1e-6)
    return type(value) is type(expected) and bool(value == expected)


def _row_key(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Return what sorts rows alike, however their numbers are rounded."""
    cells = map(_plain, row)
    return tuple(
        f"{each:.4f}" if type(each) in (int, float) else str(each) if type(each) in _PLAIN else ""
        for each in cells
    )


def _shown(value: Any) -> str:
    kind = type(value)
    if kind in _PLAIN or (kind is list and all(type(each) in _PLAIN for each in value)):
        return repr(value)[:200]
    return f"a value of type {kind.__name__}"
