"""Checks of artists in matplotlib: settings that its compiled code trusts."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime.context import asking

__all__ = ["prepare_artists"]

_LARGEST_FILTER = 100  # pixels; matplotlib's own is 4, and the table grows with it

_ARTISTS = (
    ("matplotlib.collections", "Collection", "set_antialiased", lambda value: not _is_empty(value)),
    ("matplotlib.image", "_ImageBase", "set_filterrad", lambda value: 0 < float(value) <= _LARGEST_FILTER),
)
"""Setters, each with the test of its value."""


def prepare_artists() -> None:
    """Check the settings by which compiled code divides, or sizes tables."""
    for module, name, setter, is_sound in _ARTISTS:
        replace(getattr(import_module(module), name), setter, functools.partial(_checked, is_sound=is_sound))


def _is_empty(value: Any) -> bool:
    np: Any = import_module("numpy")

    return bool(np.size(value) == 0)


def _checked(real: Any, is_sound: Any) -> Any:
    def set_checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if asking() is not None and not all(map(is_sound, (*args, *kwargs.values()))):
            raise ValueError(f"{real.__name__}() takes no such value")
        return real(self, *args, **kwargs)

    return set_checked
