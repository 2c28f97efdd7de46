"""Packages with compiled code that no policy speaks for.

Compiled code opens files without an event that the second wall could refuse. Which of its arguments are
paths nobody can tell, so such a package is granted as a whole or not at all: with ``host_fs_access=True``,
which says that the files of the host are meant.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

__all__ = ["opens_unseen"]

_LIBRARY_SUFFIXES = (*EXTENSION_SUFFIXES, ".so", ".pyd", ".dll", ".dylib")

_OPEN_IN_PYTHON = frozenset("matplotlib mpl_toolkits numpy sklearn".split())
"""Compiled, but paths go through Python's own ``open``, where the wall and the workspace are."""

_OPEN_NOTHING = frozenset(
    """
    Levenshtein brotli jiter markupsafe msgpack msgspec multidict orjson pydantic_core rapidfuzz regex rpds
    simplejson ujson wrapt xxhash yaml
    """.split()
)
"""Compiled, and about values in memory alone: they take text, bytes and open streams, and no paths."""

_OVER_COMPILED = frozenset("dask duckdb geopandas ibis polars soundfile xarray".split())
"""Plain Python over compiled packages of other names, which they have open paths."""

_STDLIB_OPENS = frozenset({"ctypes", "curses", "dbm", "readline", "ssl", "tkinter"})
"""Packages of the standard library that hand paths to C libraries."""


def opens_unseen(module: str) -> bool:
    """Tell whether a module belongs to a package whose compiled code may open files by path."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names:
        return root.lstrip("_") in _STDLIB_OPENS
    if root in _OPEN_IN_PYTHON or root in _OPEN_NOTHING:
        return False
    return root in _OVER_COMPILED or _has_compiled_code(root)


@functools.cache
def _has_compiled_code(root: str) -> bool:
    """Tell whether a package holds a shared library, loaded or not."""
    module = sys.modules.get(root)
    spec = getattr(module, "__spec__", None)
    if spec is None and module is None:
        spec = importlib.util.find_spec(root)
    origin = getattr(spec, "origin", None) or getattr(module, "__file__", None)
    if isinstance(origin, str) and origin.endswith(_LIBRARY_SUFFIXES):
        return True
    folders = getattr(spec, "submodule_search_locations", None) or getattr(module, "__path__", None) or ()
    return any(
        name.endswith(_LIBRARY_SUFFIXES) for folder in folders for name in map(str, Path(folder).rglob("*"))
    )
