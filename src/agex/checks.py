"""Checks of a task's value that a line can say: ``@agent.task(checks=[columns("id", "total"), no_nulls()])``.

Each function returns a check, which is called with the value and the inputs. It returns None where the value
passes, else a message that says what is wrong and where; the model reads it and tries again.

Frames of pandas and polars, lists of dicts and lists of records have columns. Series, arrays, lists and
tuples are one column without a name, any other value is a column of one. No library is imported here.
"""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from agex.errors import DefinitionError

__all__ = [
    "Verdict",
    "between",
    "close_to",
    "columns",
    "is_subset_of",
    "matches",
    "no_nulls",
    "rows",
    "same_rows_as",
    "total_is",
    "unique",
]

Verdict: TypeAlias = Callable[[Any, Any], "str | None"]
"""A check: called with the value and the inputs, it returns what is wrong or None."""

_SHOWN = 5
"""Faults that a message names; it counts the rest."""


# -- the shape of a table


def columns(*names: str, exact: bool = False) -> Verdict:
    """Check that a table has these columns.

    Args:
        names: the columns.
        exact: whether it may have no others, and has them in this order.
    """
    _require_names("columns", names)

    def check(value: Any, inputs: Any) -> str | None:
        present = _columns(value)
        if present is None:
            return f"a table with the columns {_listed(names)} was expected, not {_kind(value)}"
        missing = [name for name in names if name not in present]
        extra = [name for name in present if name not in names] if exact else []
        if missing or extra:
            faults = [f"missing: {_listed(missing)}"] * bool(missing) + [
                f"not expected: {_listed(extra)}"
            ] * bool(extra)
            return f"{'; '.join(faults)}; the columns are {_listed(present)}"
        if exact and list(present) != list(names):
            return f"the columns are {_listed(present)}; their order must be {_listed(names)}"
        return None

    return _named(check, "columns", *map(repr, names))


def rows(count: int | None = None, *, at_least: int | None = None, at_most: int | None = None) -> Verdict:
    """Check how many rows a table has, or how many items a collection."""
    if count is None and at_least is None and at_most is None:
        raise DefinitionError("rows() needs a number: rows(3), rows(at_least=1) or rows(at_most=100)")
    low, high = (count, count) if count is not None else (at_least, at_most)

    def check(value: Any, inputs: Any) -> str | None:
        size = _size(value)
        if size is None:
            return f"rows were expected, not {_kind(value)}"
        if low is not None and size < low:
            return f"it has {size} rows, {low - size} fewer than {low}"
        if high is not None and size > high:
            return f"it has {size} rows, {size - high} more than {high}"
        return None

    return _named(check, "rows", *(str(each) for each in {low, high} if each is not None))


def no_nulls(*names: str) -> Verdict:
    """Check that no value is missing: no None, NaN, NaT or NA, in these columns or in all."""
    _require_names("no_nulls", names, at_least=0)

    def check(value: Any, inputs: Any) -> str | None:
        faults = []
        for name, cells in _cells(value, names):
            places = [place for place, cell in enumerate(cells) if _is_null(cell)]
            if places:
                faults.append(f"{_in(name)}{len(places)} missing ({_rows(places)})")
        return "; ".join(faults) or None

    return _named(check, "no_nulls", *map(repr, names))


def unique(*names: str) -> Verdict:
    """Check that no two rows have the same values in these columns together, or no two rows are the same."""
    _require_names("unique", names, at_least=0)

    def check(value: Any, inputs: Any) -> str | None:
        counts = Counter(_row_keys(value, names))
        repeated = [(key, count) for key, count in counts.items() if count > 1]
        if not repeated:
            return None
        told = ", ".join(f"{_shown_key(key)} {count} times" for key, count in repeated[:_SHOWN])
        return f"{len(repeated)} repeated: {told}{_more(len(repeated))}"

    return _named(check, "unique", *map(repr, names))


def same_rows_as(name: str, *, on: str | Sequence[str] | None = None) -> Verdict:
    """Check that a table has the rows of an input: none lost, none added, in any order.

    Args:
        name: of the input.
        on: the columns that tell rows apart; None for all that both tables have.
    """
    keys = (on,) if isinstance(on, str) else tuple(on or ())

    def check(value: Any, inputs: Any) -> str | None:
        given = inputs[name]
        known, present = _columns(given), _columns(value)
        if present is None and known is not None:
            return f"a table with the rows of {name} was expected, not {_kind(value)}"
        shared = keys or (
            tuple(each for each in known if each in (present or ())) if known is not None else ()
        )
        if known is not None and not shared:
            return f"it has none of the columns of {name}: {_listed(known)}"
        was, now = Counter(_row_keys(given, shared)), Counter(_row_keys(value, shared))
        lost, added = list((was - now).elements()), list((now - was).elements())
        faults = [
            f"{len(keys)} {what} ({', '.join(map(_shown_key, keys[:_SHOWN]))}{_more(len(keys))})"
            for what, keys in ((f"rows of {name} are not there", lost), (f"rows are not in {name}", added))
            if keys
        ]
        return "; ".join(faults) or None

    return _named(check, "same_rows_as", repr(name))


# -- values


def total_is(
    expected: Any, *, column: str | None = None, rel_tol: float = 1e-9, abs_tol: float = 0.0
) -> Verdict:
    """Check a sum.

    Args:
        expected: a number, or a function of the inputs that returns one.
        column: the column to add up; None for a value that is one column.
        rel_tol: the relative tolerance.
        abs_tol: the absolute tolerance.
    """

    def check(value: Any, inputs: Any) -> str | None:
        wanted: Any = expected(inputs) if callable(expected) else expected
        total = sum(cell for _, cells in _cells(value, _one(column)) for cell in cells if not _is_null(cell))
        if math.isclose(total, wanted, rel_tol=rel_tol, abs_tol=abs_tol):
            return None
        return f"{_in(column)}the total is {total}, not {wanted}"

    return _named(check, "total_is", *_one(column))


def between(low: Any, high: Any, *, column: str | None = None) -> Verdict:
    """Check that every value lies between two others, both included. Missing values are left out."""
    return _each(
        "between", column, lambda cell, _: low <= cell <= high, f"between {low!r} and {high!r}", low, high
    )


def matches(pattern: str, *, column: str | None = None) -> Verdict:
    """Check that a regular expression matches every text as a whole. Missing values are left out."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise DefinitionError(f"matches({pattern!r}): no regular expression: {error}") from error
    return _each(
        "matches",
        column,
        lambda cell, _: isinstance(cell, str) and compiled.fullmatch(cell) is not None,
        f"text of the form {pattern}",
        pattern,
    )


def is_subset_of(
    allowed: Iterable[Any] | Callable[[Any], Iterable[Any]], *, column: str | None = None
) -> Verdict:
    """Check that every value is among others. Missing values are left out.

    Args:
        allowed: the values, or a function of the inputs that returns them.
        column: the column; None for a value that is one column.
    """
    if callable(allowed):
        return _each(
            "is_subset_of",
            column,
            lambda cell, inputs: cell in _Members(allowed(inputs)),
            "one of the allowed values",
        )
    members = _Members(allowed)
    return _each("is_subset_of", column, lambda cell, _: cell in members, f"one of {_listed(members)}")


def close_to(expected: Any, *, rel_tol: float = 1e-6, abs_tol: float = 1e-9) -> Verdict:
    """Check that a number is near another; also in collections, dicts, series and frames of one shape.

    Args:
        expected: the value, or a function of the inputs that returns it.
        rel_tol: the relative tolerance of each number.
        abs_tol: the absolute tolerance of each number.
    """

    def is_close(value: Any, wanted: Any) -> bool:
        if _is_null(value) or _is_null(wanted):
            return _is_null(value) and _is_null(wanted)
        if isinstance(value, numbers.Real) and isinstance(wanted, numbers.Real):
            return math.isclose(value, wanted, rel_tol=rel_tol, abs_tol=abs_tol)
        return bool(value == wanted)

    def check(value: Any, inputs: Any) -> str | None:
        wanted: Any = expected(inputs) if callable(expected) else expected
        return next(_differences(value, wanted, "", is_close), None)

    return _named(check, "close_to")


def _differences(value: Any, wanted: Any, path: str, is_close: Callable[[Any, Any], bool]) -> Iterator[str]:
    """Yield what differs in two values, with its path."""
    where = f"at {path}: " if path else ""
    fields, items = _by_name(wanted), _items(wanted)
    if fields is not None:
        own = _by_name(value)
        if own is None or own.keys() != fields.keys():
            got = _kind(value) if own is None else _listed(own)
            yield f"{where}{_listed(fields)} were expected, not {got}"
            return
        for name, field in fields.items():
            yield from _differences(own[name], field, f"{path}[{name!r}]", is_close)
    elif items is not None:
        cells = _items(value)
        if cells is None or len(cells) != len(items):
            count = _kind(value) if cells is None else len(cells)
            yield f"{where}{len(items)} items were expected, not {count}"
            return
        for place, (cell, item) in enumerate(zip(cells, items, strict=True)):
            yield from _differences(cell, item, f"{path}[{place}]", is_close)
    elif not is_close(value, wanted):
        is_number = isinstance(wanted, numbers.Number)
        yield f"{where}{value!r} is not {'close to ' if is_number else ''}{wanted!r}"


def _by_name(value: Any) -> dict[Any, Any] | None:
    """Return the items of a mapping, or the columns of a frame; None for another value."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "columns") and hasattr(value, "__getitem__"):
        return {name: list(value[name]) for name in value.columns}
    return None


# -- checks of every value


def _each(
    check_name: str,
    column: str | None,
    is_right: Callable[[Any, Any], bool],
    told: str,
    *shown: Any,
) -> Verdict:
    def check(value: Any, inputs: Any) -> str | None:
        for name, cells in _cells(value, _one(column)):
            wrong = [
                (place, cell)
                for place, cell in enumerate(cells)
                if not _is_null(cell) and not is_right(cell, inputs)
            ]
            if wrong:
                first = ", ".join(f"{cell!r} in row {place}" for place, cell in wrong[:_SHOWN])
                return f"{_in(name)}{len(wrong)} not {told}: {first}{_more(len(wrong))}"
        return None

    return _named(check, check_name, *map(repr, shown), *_one(column))


class _Members(Collection[Any]):
    """Allowed values, also those that cannot be hashed."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)
        self._hashed = {each for each in self._values if isinstance(each, Hashable)}

    def __contains__(self, value: object) -> bool:
        try:
            return value in self._hashed
        except TypeError:
            return value in self._values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


# -- tables and columns


def _columns(value: Any) -> list[str] | None:
    """Return the columns of a table in their order; None for another value."""
    if hasattr(value, "columns") and hasattr(value, "__getitem__"):
        return list(value.columns)
    if isinstance(value, list | tuple) and value and all(isinstance(row, Mapping) for row in value):
        return list(dict.fromkeys(name for row in value for name in row))
    if isinstance(value, list | tuple) and value and all(_fields(row) is not None for row in value):
        return list(dict.fromkeys(name for row in value for name in _fields(row) or ()))
    return None


def _fields(row: Any) -> list[str] | None:
    """Return the fields of a record: a dataclass, a named tuple, a model of pydantic."""
    declared = ("__dataclass_fields__", "_fields", "model_fields")
    return next((list(getattr(type(row), name)) for name in declared if hasattr(type(row), name)), None)


def _cells(value: Any, names: Sequence[str]) -> Iterator[tuple[str | None, list[Any]]]:
    """Yield columns by name; a value that is no table is one without."""
    present = _columns(value)
    if present is None:
        if names:
            raise ValueError(f"a table with the column {names[0]!r} was expected, not {_kind(value)}")
        items = _items(value)
        yield None, [value] if items is None else items
        return
    for name in names or present:
        if name not in present:
            raise ValueError(f"there is no column {name!r}; the columns are {_listed(present)}")
        yield name, _column(value, name)


def _column(table: Any, name: str) -> list[Any]:
    if hasattr(table, "columns"):
        return list(table[name])
    return [row.get(name) if isinstance(row, Mapping) else getattr(row, name, None) for row in table]


def _row_keys(value: Any, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(map(_key, cells) for _, cells in _cells(value, names)), strict=True)


def _key(cell: Any) -> Any:
    """Return what equals for equal cells, and for missing ones."""
    if _is_null(cell):
        return None
    return cell if isinstance(cell, Hashable) else repr(cell)


def _items(value: Any) -> list[Any] | None:
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        return None
    return list(value) if getattr(value, "ndim", 1) else None


def _size(value: Any) -> int | None:
    return len(value) if hasattr(value, "__len__") and not isinstance(value, str | bytes) else None


def _is_null(cell: Any) -> bool:
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    is_scalar = isinstance(cell, numbers.Number) or type(cell).__name__ in ("datetime64", "timedelta64")
    return is_scalar and bool(cell != cell)  # noqa: PLR0124 - as NaN and NaT alone are


# -- texts


def _named(check: Verdict, name: str, *shown: str) -> Verdict:
    check.__name__ = f"{name}({', '.join(shown)})"
    return check


def _require_names(check: str, names: Sequence[str], at_least: int = 1) -> None:
    if len(names) < at_least or not all(isinstance(name, str) for name in names):
        raise DefinitionError(f"{check} takes names of columns: {check}('id', 'total')")


def _one(column: str | None) -> tuple[str, ...]:
    return () if column is None else (column,)


def _in(name: str | None) -> str:
    return "" if name is None else f"{name}: "


def _listed(names: Iterable[Any]) -> str:
    told = [repr(name) for name in names]
    return ", ".join(told[:20]) + (f" and {len(told) - 20} more" if len(told) > 20 else "")


def _rows(places: Sequence[int]) -> str:
    return f"rows {', '.join(map(str, places[:_SHOWN]))}{_more(len(places))}"


def _more(count: int) -> str:
    return f" and {count - _SHOWN} more" if count > _SHOWN else ""


def _shown_key(key: tuple[Any, ...]) -> str:
    return repr(key[0]) if len(key) == 1 else repr(key)


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
