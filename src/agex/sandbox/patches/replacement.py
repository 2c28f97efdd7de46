"""Replacement of functions in a library, for the whole process and once.

A replacement asks `agex.sandbox.runtime.context.asking` whose call it is, and passes a host call on
unchanged.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["is_stand_in", "replace", "replace_everywhere"]

Make = Callable[[Any], Callable[..., Any]]
"""Makes the replacement of a real function."""

_MADE: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()


def is_stand_in(function: Any) -> bool:
    """Return whether a function is a replacement."""
    return function in _MADE


def replace(owner: Any, name: str, make: Make) -> None:
    """Replace a function of a module, or a method, if this version of the library has it."""
    real = getattr(owner, name, None)
    if real is not None and not is_stand_in(real):
        setattr(owner, name, _made(real, make))


def replace_everywhere(home: str, name: str, make: Make) -> None:
    """Replace a function in its home, and in the modules of the library that have imported it."""
    real = getattr(import_module(home), name)
    if is_stand_in(real):
        return
    made, package = _made(real, make), home.partition(".")[0]
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(f"{package}.") and vars(module).get(name) is real:
            setattr(module, name, made)


def _made(real: Any, make: Make) -> Callable[..., Any]:
    updated = () if isinstance(real, type) else functools.WRAPPER_UPDATES
    made = functools.update_wrapper(make(real), real, updated=updated)
    _MADE.add(made)
    return made
