"""Figures and pictures as parts of a page.

A figure may hold functions and objects of guest code. One of matplotlib is drawn as it is for a
model: under limits and behind the audit hook. One of plotly is read field by field, plain data only,
and drawn by plotly's own script in a frame that has no origin and no network.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from functools import partial
from typing import Any

from agex.agent.rendering.images import encoded
from agex.contract import short_repr
from agex.contract.real_types import is_known
from agex.display import Picture, Scripted, Text, cut
from agex.models.base import Image

__all__ = ["drawn", "plotly_figure"]

SECONDS = 5.0
"""For drawing one figure; a large one of matplotlib takes about one."""
ITEMS = 200_000
"""Numbers and texts of a plotly figure; above that a browser crawls, and so does a saved notebook."""

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
"""Of the frame: nothing is fetched and nothing is sent. Plotly compiles functions of its own."""
_DOCUMENT = """<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%(policy)s">
<body style="margin:0"><div id="figure" style="height:100vh"></div>
<script>%(plotly)s</script>
<script>
const figure = %(form)s;
Plotly.newPlot("figure", figure.data, figure.layout, {responsive: true});
</script>
"""


def drawn(value: Any) -> Picture | Text:
    """Draw a matplotlib figure or a PIL image; say why where that does not go."""
    from agex.sandbox import Limits, Policy, Sandbox

    session = Sandbox(Policy(), limits=Limits(seconds=SECONDS)).session()
    result = session.call(partial(encoded, value, session.paused))
    if type(result.value) is not Image:
        why = cut(result.traceback.strip(), 300)
        return Text(text=f"{short_repr(value)}\nIt could not be drawn: {why}")
    return Picture(data=result.value.data, media_type=result.value.media_type)


def plotly_figure(figure: Any) -> Scripted | Text:
    """Show a plotly figure by its own script in a frame of its own; say why where that does not go."""
    held = object.__getattribute__(figure, "__dict__")  # its methods may be hidden by attributes
    copy = _Plain(ITEMS)
    try:
        data = [copy.mapping(trace) for trace in held["_data"]]
        layout = copy.mapping(held["_layout"])
    except (ValueError, RecursionError) as error:
        return Text(text=f"A plotly figure that is not shown: {error}")
    from plotly.offline import get_plotlyjs

    kinds = ", ".join(sorted({str(trace.get("type", "scatter")) for trace in data}))
    # A "<" in a script could end it, or begin a comment that swallows its end.
    form = json.dumps({"data": data, "layout": layout}).replace("<", "\\u003c")
    document = _DOCUMENT % {"policy": _POLICY, "plotly": get_plotlyjs(), "form": form}
    return Scripted(document=document, label=f"A plotly figure ({kinds})")


class _Plain:
    """Copies what JSON can say of a figure, by exact types."""

    def __init__(self, items: int) -> None:
        self._items = items

    def mapping(self, value: Any) -> dict[str, Any]:
        """Copy a dict with texts for keys.

        Raises:
            ValueError: it is none, or holds something else, or too much.
        """
        if type(value) is not dict or not all(type(key) is str for key in value):
            raise ValueError(f"it holds {short_repr(value, 60)} in the place of its settings.")
        return {self.of(key): self.of(each) for key, each in value.items()}

    def of(self, value: Any) -> Any:
        """Copy a value.

        Raises:
            ValueError: it holds something else, or too much.
        """
        self._items -= 1
        if self._items < 0:
            raise ValueError(f"it holds more than {ITEMS:,} values.")
        kind = type(value)
        if kind in {str, int, bool, type(None)}:
            return value
        if kind is float:
            return value if math.isfinite(value) else None
        if kind in {list, tuple}:
            return [self.of(each) for each in value]
        if kind is dict:
            return self.mapping(value)
        return self._of_library(value, kind)

    def _of_library(self, value: Any, kind: type) -> Any:
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None and kind is numpy.ndarray:
            if value.size > self._items:
                raise ValueError(f"it holds more than {ITEMS:,} values.")
            times = value.dtype.kind in {"M", "m"}
            return self.of((value.astype(str) if times else value).tolist())
        if numpy is not None and is_known(kind, numpy.generic):
            return self.of(value.item())
        if is_known(kind, dt.date, dt.time):  # pandas' timestamps are dates
            return str(value)
        raise ValueError(f"it holds {short_repr(value, 60)}, which is no plain data.")
