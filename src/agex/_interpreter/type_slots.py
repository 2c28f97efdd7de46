"""Slots of a type, read without asking its metaclass.

A guest metaclass runs code where it is asked, and may lie.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

__all__ = [
    "bases_of",
    "flags_of",
    "is_static",
    "module_of",
    "mro_of",
    "name_of",
    "namespace_of",
    "qualname_of",
    "worked_out_mro",
]

_SLOTS = type.__dict__

name_of: Callable[[type], str] = _SLOTS["__name__"].__get__
qualname_of: Callable[[type], str] = _SLOTS["__qualname__"].__get__
module_of: Callable[[type], Any] = _SLOTS["__module__"].__get__
"""For any type: the namespace of the class holds it."""
bases_of: Callable[[type], tuple[type, ...]] = _SLOTS["__bases__"].__get__
namespace_of: Callable[[type], types.MappingProxyType[str, Any]] = _SLOTS["__dict__"].__get__
worked_out_mro: Callable[[type], tuple[type, ...] | None] = _SLOTS["__mro__"].__get__
"""A class and its bases in order; None while its metaclass still works that out."""

flags_of: Callable[[type], int] = _SLOTS["__flags__"].__get__

_HEAPTYPE = 1 << 9
"""``Py_TPFLAGS_HEAPTYPE`` in CPython's ``object.h``."""


def is_static(class_: type) -> bool:
    """Return whether a class is built into the interpreter or a compiled module: no statement made it."""
    return not flags_of(class_) & _HEAPTYPE


def mro_of(class_: type) -> tuple[type, ...]:
    """Return a class and its bases in order; nothing while its metaclass still works that out."""
    return worked_out_mro(class_) or ()
