"""Values and files as a page shows them: text, a table, a picture, a figure. Always bounded.

Values are an agent's: no method of theirs runs here but those of builtin types and of tables and
figures that are exactly their library's own.
"""

from __future__ import annotations

import ast
import base64
import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agex.agent.rendering.images import media_type_of
from agex.contract import preview, short_repr
from agex.contract.real_types import class_name
from agex.sandbox.runtime.provenance import source_of
from agex.values.base.type_checks import is_exactly, is_function

__all__ = ["file_look", "look"]

Look = dict[str, Any]

TEXT_CHARS = 200_000
"""Of a text: some four thousand lines."""
PREVIEW_CHARS = 8_000
ROWS, COLUMNS, CELL_CHARS = 200, 40, 300
MOST_BYTES = 5 * 1024 * 1024
"""Of a picture or a figure, as where a model is shown one."""


def look(value: Any) -> Look:
    """Return what there is to see of a variable: a ``kind``, its ``type``, a ``text``, and what the kind has.

    - ``text``: nothing more.
    - ``table``: ``columns``, ``rows`` of texts, ``total`` rows there are.
    - ``picture``: ``media_type``, and ``data`` in base64.
    - ``figure``: ``figure``, plotly's own JSON.
    - ``source``: the text is that of a function.
    """
    kind = type(value)
    seen = next((found for show in _SHOWN if (found := show(value)) is not None), {"kind": "text"})
    return {"text": _text(value), **seen, "type": class_name(kind)}


def file_look(path: str, content: bytes) -> Look:
    """Return what there is to see of a file, as of a variable; further kinds are ``html`` and ``bytes``."""
    seen = {"type": "file", "size": len(content), "text": ""}
    picture = _picture(content)
    if picture is not None:
        return {**seen, **picture}
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {**seen, "kind": "bytes"}
    seen |= {"text": text[:TEXT_CHARS], "cut": len(text) > TEXT_CHARS}
    suffix = path.rpartition(".")[2].lower()
    if suffix in {"csv", "tsv"}:
        return {**seen, **_separated(text, "\t" if suffix == "tsv" else ",")}
    if suffix in {"html", "htm"} and not seen["cut"]:
        return {**seen, "kind": "html"}
    if suffix == "svg" and not seen["cut"]:
        data = base64.b64encode(content).decode()
        return {**seen, "kind": "picture", "media_type": "image/svg+xml", "data": data}
    return {**seen, "kind": "text"}


def _text(value: Any) -> str:
    return value[:TEXT_CHARS] if type(value) is str else preview(value, PREVIEW_CHARS)


# -- tables --------------------------------------------------------------------------------------


def _table(columns: Iterable[Any], rows: Iterable[Sequence[Any]], total: int) -> Look:
    cells = [[_cell(each) for each in row[:COLUMNS]] for row in itertools.islice(rows, ROWS)]
    names = [_cell(name) for name in itertools.islice(columns, COLUMNS)]
    return {"kind": "table", "columns": names, "rows": cells, "total": total}


def _cell(value: Any) -> str:
    if type(value) is str:
        return value if len(value) <= CELL_CHARS else f"{value[:CELL_CHARS]}…"
    if value is None:
        return ""
    if is_exactly(type(value), "pandas", "Timestamp"):
        return str(value)
    return short_repr(value, CELL_CHARS)


def _pandas_frame(value: Any) -> Look | None:
    if not is_exactly(type(value), "pandas", "DataFrame"):
        return None
    head = value.iloc[:ROWS, : COLUMNS - 1]
    rows = zip(head.index.tolist(), *(_column(head.iloc[:, n]) for n in range(head.shape[1])), strict=True)
    return _table(["", *head.columns.tolist()], rows, len(value))


def _column(series: Any) -> list[Any]:
    """Return a column as objects of Python: a row taken as one would make its numbers of one type."""
    found: list[Any] = series.tolist()
    return found


def _pandas_series(value: Any) -> Look | None:
    if not is_exactly(type(value), "pandas", "Series"):
        return None
    head = value.iloc[:ROWS]
    name = "value" if value.name is None else value.name
    return _table(["", name], zip(head.index.tolist(), head.tolist(), strict=True), len(value))


def _polars_frame(value: Any) -> Look | None:
    if not is_exactly(type(value), "polars", "DataFrame"):
        return None
    return _table(value.columns, value.head(ROWS).rows(), value.height)


def _arrow_table(value: Any) -> Look | None:
    if not is_exactly(type(value), "pyarrow", "Table"):
        return None
    rows = (list(row.values()) for row in value.slice(0, ROWS).to_pylist())
    return _table(value.column_names, rows, value.num_rows)


def _records(value: Any) -> Look | None:
    """Take a list of dicts that have some keys in common for a table."""
    if type(value) is not list or not value or not all(type(row) is dict and row for row in value[:ROWS]):
        return None
    columns: dict[Any, None] = {}
    for row in value[:ROWS]:
        if not all(type(key) is str for key in row):
            return None
        columns |= dict.fromkeys(row)
    if len(columns) > COLUMNS:
        return None
    return _table(columns, ([row.get(name) for name in columns] for row in value[:ROWS]), len(value))


def _separated(text: str, delimiter: str) -> Look:
    """Read a file of separated values; one that cannot be read so is text."""
    try:
        rows = list(csv.reader(io.StringIO(text[:TEXT_CHARS]), delimiter=delimiter))
    except csv.Error:
        return {"kind": "text"}
    if len(rows) < 2:
        return {"kind": "text"}
    return _table(rows[0], rows[1:], text.count("\n", 0, len(text.rstrip("\n"))))


# -- pictures and code ---------------------------------------------------------------------------


def _bytes(value: Any) -> Look | None:
    return _picture(value) if type(value) is bytes else None


def _picture(data: bytes) -> Look | None:
    media_type = media_type_of(data)
    if media_type is None or len(data) > MOST_BYTES:
        return None
    return {"kind": "picture", "media_type": media_type, "data": base64.b64encode(data).decode()}


def _figure(value: Any) -> Look | None:
    if not is_exactly(type(value), "plotly.graph_objs", "Figure"):
        return None
    text = value.to_json()
    return {"kind": "figure", "figure": json.loads(text)} if len(text) <= MOST_BYTES else None


def _function(value: Any) -> Look | None:
    """Return the source of a function that an agent wrote."""
    source = source_of(value.__code__) if is_function(value) else None
    if source is None:
        return None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == value.__name__:
            return {"kind": "source", "text": ast.unparse(node)[:TEXT_CHARS]}
    return None


_SHOWN: tuple[Callable[[Any], Look | None], ...] = (
    _pandas_frame,
    _pandas_series,
    _polars_frame,
    _arrow_table,
    _records,
    _bytes,
    _figure,
    _function,
)
