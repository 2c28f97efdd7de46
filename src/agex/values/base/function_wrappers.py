"""Wrappers of the standard library around functions, and the functions in them."""

from __future__ import annotations

import contextlib
import functools
import types
from typing import Any

__all__ = ["DISPATCHER", "MANAGERS", "functions_of", "held_by", "plain_function", "wraps"]

MANAGERS: dict[str, types.CodeType] = {
    name: getattr(contextlib, name)(lambda: None).__code__
    for name in ("contextmanager", "asynccontextmanager")
}
"""Decorators of the standard library that wrap a guest function, and the code of the wrapper."""

DISPATCHER: types.CodeType = functools.singledispatch(lambda _: None).__code__  # type: ignore[attr-defined]
"""The code of the wrapper that ``functools.singledispatch`` makes."""


def held_by(function: types.FunctionType) -> list[Any]:
    """Return the functions and classes in a wrapper of the standard library; none for any other function."""
    if not _is_wrapper(function):
        return []
    registry = vars(function).get("registry")
    pairs = registry.items() if type(registry) is types.MappingProxyType else ()
    return [vars(function)["__wrapped__"], *(each for pair in pairs for each in pair)]


def _is_wrapper(function: types.FunctionType) -> bool:
    code = function.__code__
    return (code is DISPATCHER or code in MANAGERS.values()) and "__wrapped__" in vars(function)


def functions_of(cls: type) -> list[types.FunctionType]:
    """Return the functions in a class's namespace, out of what wraps them."""
    found: list[types.FunctionType] = []
    for value in vars(cls).values():
        parts = [getattr(value, name) for name in _WRAPPERS.get(type(value), ())] or [value]
        found += [each for each in parts if type(each) is types.FunctionType]
    return found


_WRAPPERS: dict[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    type(functools.lru_cache(lambda: None)): ("__wrapped__",),
}
"""Wrappers that a class statement puts around functions, and their attributes that hold those."""


def wraps(wrapper: type, *names: str) -> None:
    """Register a host class that wraps functions, with the attributes that hold them.

    By identity: a guest class of the same name could run code when it is asked.
    """
    _WRAPPERS[wrapper] = names


def plain_function(value: Any) -> Any:
    """Return the function in a class or static method; anything else as it is."""
    return value.__func__ if type(value) in {classmethod, staticmethod} else value
