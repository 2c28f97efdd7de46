"""Values as parts of a page, without running their code.

A value may be of a class that the agent wrote, or hold objects of one: none of its methods runs here,
`_repr_html_` and `__str__` included. Tables are read cell by cell; figures and pictures are shown where
their type is exactly the library's (see `figures`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from agex.agent.rendering.figure_view import drawn, plotly_figure
from agex.contract import preview, short_repr
from agex.contract.real_types import is_known
from agex.display import Drawing, Part, Table, Text
from agex.values.base.type_checks import is_exactly

__all__ = ["ROWS", "exhibits", "named_values"]

ROWS = 20
"""Of a table that are shown: the first half and the last."""
COLUMNS = 12
CELL_CHARS = 60
VALUE_CHARS = 3_000


def exhibits(value: Any, label: str = "") -> Iterator[Part]:
    """Yield the parts of a page that show a value."""
    kind = type(value)
    if is_exactly(kind, "pandas", "DataFrame"):
        yield _frame(value, label)
    elif is_exactly(kind, "pandas", "Series"):
        yield _series(value, label)
    elif is_exactly(kind, "plotly.graph_objs", "Figure"):
        yield Drawing(draw=partial(plotly_figure, value), label=label or "A plotly figure")
    elif any(is_exactly(kind, *each) for each in _DRAWN):
        yield Drawing(draw=partial(drawn, value), label=label or short_repr(value))
    else:
        yield Text(text=preview(value, VALUE_CHARS), label=label)


_DRAWN = (("matplotlib.figure", "Figure"), ("PIL.Image", "Image"))


def named_values(values: Iterable[tuple[str, Any]], limit: int = 300) -> Table:
    """Return a table of values by name, each in short."""
    return Table(rows=[(name, preview(value, limit)) for name, value in values])


def _frame(frame: Any, label: str) -> Part:
    # Only properties of the class and `iloc` are asked: methods could be hidden by attributes of the object.
    rows, columns = frame.shape
    picked = list(_ends(rows))
    part = type(frame)(frame).iloc[picked, :COLUMNS]  # without its `attrs`, of which copies would be made
    names = [_cell(name) for name in part.columns]
    held = [[_cell(each) for each in part.iloc[:, number].array] for number in range(len(names))]
    body = [
        (_cell(index), *cells)
        for index, *cells in zip(part.index, *held, strict=True)
    ]  # fmt: skip
    note = f"{rows:,} rows x {columns:,} columns" + (
        f"; {COLUMNS} columns shown" if columns > COLUMNS else ""
    )
    return Table(head=("", *names), rows=_gap(body, rows), label=label or _name(frame), note=note)


def _series(series: Any, label: str) -> Part:
    picked = list(_ends(len(series.array)))
    pairs = zip(series.index[picked], series.array[picked], strict=True)
    body = [(_cell(index), _cell(each)) for index, each in pairs]
    note = f"{len(series.array):,} values of {series.dtype}"
    return Table(
        head=("", _cell(series.name)), rows=_gap(body, len(series.array)), label=label or "Series", note=note
    )


def _ends(size: int) -> Iterator[int]:
    if size <= ROWS:
        return iter(range(size))
    return iter([*range(ROWS // 2), *range(size - ROWS // 2, size)])


def _gap(body: Sequence[tuple[str, ...]], size: int) -> Sequence[tuple[str, ...]]:
    if size <= ROWS or not body:
        return body
    return [*body[: ROWS // 2], ("…",) * len(body[0]), *islice(body, ROWS // 2, None)]


def _cell(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return str(value[:CELL_CHARS]) if len(value) <= CELL_CHARS else f"{value[:CELL_CHARS]}…"
    if kind is float:
        return f"{value:.6g}"
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and is_known(kind, numpy.floating):
        return f"{float(value):.6g}"
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and kind in (pandas.Timestamp, pandas.Timedelta):
        return str(value)
    return _unwrapped(short_repr(value, CELL_CHARS))


def _unwrapped(text: str) -> str:
    """Leave out the type that numpy writes around a number: ``np.int64(3)`` is a 3."""
    head, bracket, rest = text.partition("(")
    return rest[:-1] if bracket and head.startswith("np.") and rest.endswith(")") else text


def _name(value: Any) -> str:
    return type(value).__name__
