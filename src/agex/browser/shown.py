"""Values as a page may show them: plain data, bounded, with text in any case. Nothing in it is to be run.

The repr of a guest object is called inside a session's limits and behind its wall.
"""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

from agex.agent.call.events import plain_data
from agex.agent.rendering.images import encoded
from agex.contract import preview, short_repr
from agex.sandbox import Limits, Policy, Session
from agex.values.base.type_checks import is_exactly, is_made_of

__all__ = ["Showing"]

_TEXT_CHARS = 20_000
_CELL_CHARS = 200
_COLUMNS = 100
_HTML_CHARS = 500_000
_SECONDS = 5.0
"""Seconds that showing one value may take."""


class Showing:
    """Shows values.

    Args:
        rows: how many rows of a table are shown.
    """

    def __init__(self, rows: int = 200) -> None:
        self._rows = rows

    def shown(self, value: Any) -> dict[str, Any]:
        """Return ``{"kind": ..., "text": ..., ...}``, see docs/browser.md."""
        text = value if type(value) is str else preview(value, _TEXT_CHARS)
        session = Session(Policy(), Limits(seconds=_SECONDS), {})
        result = session.call(self._details, value, session)
        details = result.value if result.error is None and result.stopped is None else None
        found: dict[str, Any] = details if type(details) is dict else {"kind": "text"}
        return {**found, "text": _exact(text)[:_TEXT_CHARS]}

    def _details(self, value: Any, session: Session) -> dict[str, Any]:
        kind = type(value)
        if kind is str:
            return {"kind": "text"}
        if is_made_of(kind, "plotly.basedatatypes", "BaseFigure"):
            return {"kind": "figure", "json": json.loads(value.to_json())}
        if _is_picture(value):
            with contextlib.suppress(TypeError, ValueError, RuntimeError):  # then there is its text
                image = encoded(value, session.paused)
                data = base64.b64encode(image.data).decode("ascii")
                return {"kind": "image", "media_type": image.media_type, "base64": data}
            return {"kind": "text"}
        if is_exactly(kind, "pandas", "DataFrame") or is_exactly(kind, "pandas", "Series"):
            return self._frame(value)
        try:
            data = plain_data(value)
        except ValueError:
            return _html(value)
        columns = _columns(data)
        if columns is None:
            return {"kind": "json", "json": data}
        rows = [[record.get(name) for name in columns] for record in data[: self._rows]]
        return {"kind": "table", "columns": columns, "rows": rows, "total": len(data), "json": data}

    def _frame(self, value: Any) -> dict[str, Any]:
        frame = value if hasattr(value, "columns") else value.to_frame()
        head = frame.iloc[: self._rows, :_COLUMNS]
        columns = [*(name or "" for name in head.index.names), *head.columns]
        return {
            "kind": "table",
            "columns": [_name(each) for each in columns],
            "rows": [
                [*_flat(row[0]), *map(_cell, row[1:])] for row in head.itertuples(index=True, name=None)
            ],
            "total": len(frame),
        }


def _is_picture(value: Any) -> bool:
    kind = type(value)
    if kind is bytes:
        return True
    return any(is_made_of(kind, module, name) for module, name in _PICTURES)


_PICTURES = (
    ("PIL.Image", "Image"),
    ("matplotlib.figure", "Figure"),
    ("matplotlib.axes", "Axes"),
)


def _columns(data: Any) -> list[str] | None:
    """Return the columns of plain data that is a table: two records or more that share their first name."""
    if type(data) is not list or len(data) < 2 or not all(type(each) is dict and each for each in data):
        return None
    if len({next(iter(each)) for each in data}) > 1:
        return None
    names = list(dict.fromkeys(name for each in data for name in each))
    return names if len(names) <= _COLUMNS else None


def _flat(label: Any) -> list[Any]:
    """Return the label of a row: one cell, or one of each level."""
    return [_cell(each) for each in label] if type(label) is tuple else [_cell(label)]


def _cell(value: Any) -> Any:
    """Return a cell as JSON can say it, and otherwise as text."""
    try:
        data = plain_data(value)
    except ValueError:
        return _exact(short_repr(value, _CELL_CHARS))
    if type(data) is str:
        return _exact(data)[:_CELL_CHARS]
    return data if type(data) in {int, float, bool, type(None)} else _exact(short_repr(value, _CELL_CHARS))


def _name(label: Any) -> str:
    return _exact(label if type(label) is str else short_repr(label, _CELL_CHARS))


def _html(value: Any) -> dict[str, Any]:
    """Return what a value says of itself in HTML, for a frame that runs nothing."""
    say = getattr(type(value), "_repr_html_", None)
    html = say(value) if callable(say) else None
    if type(html) is str and len(html) <= _HTML_CHARS:
        return {"kind": "html", "html": _exact(html)}
    return {"kind": "text"}


def _exact(text: str) -> str:
    """Spell out lone surrogates, which a page cannot be sent."""
    return text.encode("utf-8", "backslashreplace").decode()
