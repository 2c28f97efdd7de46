"""``isinstance`` without asking the value.

``isinstance(x, T)`` reads ``x.__class__`` where the type alone does not decide, and so runs a
``__getattribute__`` of guest code.
"""

from __future__ import annotations

import sys
import types
from typing import TypeGuard

from agex._interpreter.type_slots import name_of

__all__ = ["is_a", "is_class", "is_exactly", "is_function", "is_made_of", "package_of", "type_name"]


def is_a(value: object, cls: type | tuple[type, ...]) -> bool:
    """Return whether the type of a value is one of these classes, or made from one."""
    return issubclass(type(value), cls)


def package_of(cls: type) -> str:
    """Return the top-level package of a class; a guest may call it anything, of any type."""
    module = cls.__module__
    return module.partition(".")[0] if type(module) is str else ""


def type_name(value: object) -> str:
    """Return the name of a value's class without asking its metaclass, which guest code may have written."""
    return name_of(type(value))


def is_made_of(kind: type, module: str, name: str) -> bool:
    """Return whether a type is a class of a library, or made from it; one that was not imported has none.

    By identity: a guest class may claim any module.
    """
    found = getattr(sys.modules.get(module), name, None)
    return found is not None and issubclass(kind, found)


def is_exactly(kind: type, module: str, name: str) -> bool:
    """Return whether a type is exactly this class of a library: a subclass may run code of its own."""
    return kind is getattr(sys.modules.get(module), name, None)


def is_class(value: object) -> TypeGuard[type]:
    """Return whether a value is a class."""
    return issubclass(type(value), type)


def is_function(value: object) -> TypeGuard[types.FunctionType]:
    """Return whether a value is a function written in Python."""
    return type(value) is types.FunctionType
