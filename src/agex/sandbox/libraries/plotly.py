"""Policy of plotly."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import Any

from agex.sandbox.classes import unsafe_protocols
from agex.sandbox.libraries.argument_checks import Stream
from agex.sandbox.patches.library_caches import hold, hold_of_class
from agex.sandbox.patches.replacement import replace_everywhere
from agex.sandbox.policy.library import Library, ModuleMembers, less, only

__all__ = ["LIBRARIES"]

_SCALES = ModuleMembers(names=("*",), without=("swatches*",))  # lists of colors; swatches draw them
_COLORS = "qualitative sequential diverging cyclical carto cmocean colorbrewer plotlyjs".split()

_MODULES = {
    "": only(),  # its own functions are pandas' plotting backend
    "colors": less("decimal exceptions Number"),
    "data": less(),  # data sets that come with it
    **{f"colors.{name}": _SCALES for name in _COLORS},
    **{f"/_plotly_utils.colors.{name}": _SCALES for name in _COLORS},
    # defaults: of the process
    "express": less("defaults set_mapbox_access_token optional_imports trendline_functions imshow_utils"),
    "express.colors": less("swatches*"),
    "express.data": less(),
    "figure_factory": less(),
    "graph_objects": less(),
    "graph_objs": less(),
    # writers of files, converters in other processes, shared templates, renderers and defaults
    "io": only("to_json from_json to_html"),
    "subplots": only("make_subplots"),
}
"""Not listed: offline (writes files, opens a browser), optional_imports (imports by name), tools, utils."""

_DENIED = frozenset(
    """
    write_image
    to_image full_figure_for_development
    show
    """.split()
    # start a browser; open one
)

_HTML = Stream(keyword="file", writes=True, without=("auto_open",))  # which starts a browser
_JSON = Stream(keyword="file", writes=True, without=("engine",))


def _prepare() -> None:
    """Use exact keys for the tables of the process, and require the table protocol of objects for narwhals.

    A guest class may have the name of the protocol while its objects do not have it.
    """
    hold(type(import_module("plotly.io").templates), "__getitem__")
    with contextlib.suppress(ImportError):  # of another version
        hold_of_class(import_module("plotly.validator_cache").ValidatorCache, "get_validator")
    with contextlib.suppress(ImportError):  # of another version
        replace_everywhere("narwhals._interchange.dataframe", "supports_dataframe_interchange", _answering)


def _answering(real: Any) -> Any:
    return lambda obj: real(obj) and hasattr(obj, unsafe_protocols.TABLE)


LIBRARIES = {
    "plotly": Library(
        name="plotly",
        modules=_MODULES,
        lazy=("graph_objs.*",),
        denied=_DENIED,
        instead=dict.fromkeys(("show", "write_image", "to_image"), "return the figure, or use write_html()"),
        guarded={"write_html": _HTML, "write_json": _JSON},
        writable=frozenset({"BaseFigure", "BasePlotlyType"}),
        brings=("numpy",),
        preload=("narwhals", "_plotly_utils"),
        prepare=_prepare,
    )
}
