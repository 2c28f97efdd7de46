"""``isinstance`` without asking the value.

``isinstance(x, T)`` reads ``x.__class__`` where the type alone does not say yes, and so runs what a guest
wrote as ``__getattribute__``.
"""

from __future__ import annotations

import types
from typing import TypeGuard

__all__ = ["is_a", "is_class", "is_function", "package_of"]


def is_a(value: object, cls: type | tuple[type, ...]) -> bool:
    """Tell whether the type of a value is one of these classes, or made from one."""
    return issubclass(type(value), cls)


def package_of(cls: type) -> str:
    """Give the top-level package of a class; a guest may call it anything, of any type."""
    module = cls.__module__
    return module.partition(".")[0] if type(module) is str else ""


def is_class(value: object) -> TypeGuard[type]:
    """Tell whether a value is a class."""
    return issubclass(type(value), type)


def is_function(value: object) -> TypeGuard[types.FunctionType]:
    """Tell whether a value is a function written in Python."""
    return type(value) is types.FunctionType
