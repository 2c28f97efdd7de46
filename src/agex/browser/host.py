"""Pyodide's own modules, which no checker knows: looked up where they are used, kept nowhere."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["ffi", "page"]


def page() -> Any:
    """Return ``js``: the page's global object."""
    return importlib.import_module("js")


def ffi() -> Any:
    """Return ``pyodide.ffi``: what passes between Python and JavaScript."""
    return importlib.import_module("pyodide.ffi")
