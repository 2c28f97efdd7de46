"""Which libraries have a policy."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agex.sandbox.libraries.library import Library

__all__ = ["find"]

_ROOMS = {
    "io": "buffers",
    "matplotlib": "matplotlib_policy",
    "mpl_toolkits": "matplotlib_policy",
    "numpy": "numpy_policy",
    "pandas": "pandas_policy",
    "pathlib": "pathlib_policy",
    "plotly": "plotly_policy",
    "scipy": "sklearn_policy",
    "sklearn": "sklearn_policy",
    "sqlite3": "sqlite_policy",
    "struct": "buffers",
}
"""Import name to the module here that says it."""


@functools.cache
def find(name: str) -> Library | None:
    """Give the policy for an import name; None for a library that has none."""
    room = _ROOMS.get(name)
    if room is None:
        return None
    libraries: dict[str, Library] = importlib.import_module(f"{__package__}.{room}").LIBRARIES
    return libraries[name]
