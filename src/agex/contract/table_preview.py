"""Tables in a few lines: each column with its type, nulls, range or values, then the first and last rows.

A table may hold objects of guest code, whose methods must not run here. So numbers and moments are compared
by the library; every other cell is looked at by its exact type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from agex.escaping import line

__all__ = ["column_line", "picked_rows", "table_lines"]

HEAD_ROWS = 3
TAIL_ROWS = 2
MOST_ROWS = 1_000_000
"""Rows that the facts of a column are of: a few milliseconds a column."""
MOST_CELLS = 2_000
"""Cells of a column without numbers that are looked at, one by one."""
EXAMPLES = 3
MOST_COLUMNS = 40
"""Columns that have a line of their own; of the others only the names are told."""

_PLAIN = (str, int, float, bool)
_COMPARED = "iufM" + "m"
"""Kinds of numpy's types whose values can be compared without Python code."""

Short = Callable[[Any], str]
"""Writes a cell in short, without running code of its class."""


def table_lines(frame: Any, short: Short, limit: int) -> Iterator[str]:
    """Yield a line for each column of a pandas frame, in about *limit* characters; then the other names."""
    count = frame.shape[1]
    names = [short(name) for name in islice(frame.columns, 1_000)]
    shown = 0
    if count > MOST_COLUMNS:
        limit = max(limit - len(", ".join(names)), limit // 4)
    for number in range(min(count, MOST_COLUMNS)):
        text = f"  {names[number]}: {column_line(frame.iloc[:, number], short)}"
        limit -= len(text) + 1
        if limit < 0 and shown:
            break
        yield line(text)
        shown += 1
    if shown < count:
        rest = ", ".join(names[shown:])
        yield line(f"  and {count - shown} more columns: {rest}")


def column_line(series: Any, short: Short) -> str:
    """Return the type of a column, its nulls, and its range or values."""
    values = series.array[:MOST_ROWS]
    facts = [str(series.dtype)]
    if len(series) > MOST_ROWS:
        facts.append(f"of the first {MOST_ROWS:,} rows")
    kind = type(series.dtype).__name__
    numpy_kind = series.dtype.kind if type(series.dtype).__module__.startswith("numpy") else ""
    if numpy_kind == "b":
        facts.append(f"{int(values.to_numpy().sum()):,} true")
    elif numpy_kind and numpy_kind in _COMPARED:
        facts += _range(values)
    elif kind == "CategoricalDtype":
        facts = [*facts[1:], f"category of {_listed(values.categories, short)}", *_nulls(values)]
    elif kind == "DatetimeTZDtype":  # its moments have a time zone, which may be an object of any class
        facts += _nulls(values)
    else:
        facts += _values(values, short)
    return ", ".join(facts)


def _nulls(values: Any) -> list[str]:
    nulls = int(values.isna().sum())
    return [f"{nulls:,} null"] if nulls else []


def _range(values: Any) -> list[str]:
    held = values[~values.isna()]
    bounds = [f"{_bound(held.min())} .. {_bound(held.max())}"] if len(held) else []
    return [*_nulls(values), *bounds]


def _bound(value: Any) -> str:
    """Return a number or moment of the library as its own text."""
    return repr(value.item()) if type(value).__module__ == "numpy" else str(value).removesuffix(" 00:00:00")


def _values(values: Any, short: Short) -> list[str]:
    """Return the nulls and the distinct values of a column of any objects: of plain ones only."""
    cells = list(islice(values, MOST_CELLS))
    plain = [each for each in cells if type(each) in _PLAIN and each == each]  # noqa: PLR0124 - NaN is not itself
    nulls = sum(map(_is_null, cells))
    some = " in the first rows" if len(values) > len(cells) else ""
    facts = [f"{nulls:,} null{some}"] if nulls else []
    if len(plain) + nulls < len(cells):
        facts.append(f"e.g. {', '.join(short(each) for each in cells[:EXAMPLES])}")
        return facts
    distinct = list(dict.fromkeys(plain))
    if distinct:
        facts.append(f"{_counted(distinct, plain)}{some}: {_listed(distinct, short)}")
    return facts


def _is_null(value: Any) -> bool:
    if type(value) is float:
        return value != value  # noqa: PLR0124 - NaN is not itself
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def _counted(distinct: list[Any], plain: list[Any]) -> str:
    return "all distinct" if len(distinct) == len(plain) > 1 else f"{len(distinct):,} distinct"


def _listed(values: Any, short: Short) -> str:
    shown = [short(each) for each in islice(values, EXAMPLES)]
    return ", ".join([*shown, *(["..."] if len(values) > EXAMPLES else [])])


def picked_rows(count: int) -> list[int]:
    """Return the positions of the rows that are shown: the first and the last."""
    if count <= HEAD_ROWS + TAIL_ROWS:
        return list(range(count))
    return [*range(HEAD_ROWS), *range(count - TAIL_ROWS, count)]
