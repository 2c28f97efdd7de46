"""Guards of functions that write into read-only arrays.

An array over ``bytes`` is read-only, as are the shared arrays of matplotlib and those of Arrow. Some compiled
functions write into any array. They would change bytes of the host whose hash is already stored, or offsets
that other compiled code follows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.sandbox.libraries.argument_checks import argument, guarded
from agex.sandbox.policy.library import Guard
from agex.sandbox.runtime.context import asking

__all__ = ["at_positions", "into", "keeping_inputs", "keeping_read_only"]


def _is_read_only(value: Any) -> bool:
    ndarray: Any = import_module("numpy").ndarray

    return isinstance(value, ndarray) and not ndarray.flags.__get__(value).writeable


def into(position: int, keyword: str) -> Guard:
    """Return the guard of a function that writes into an array, which must be writable."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if _is_read_only(argument(position, keyword, args, kwargs)):
            raise ValueError("output array is read-only")
        return real(*args, **kwargs)

    return guard


def at_positions(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Guard ``ufunc.at``, which writes into its first array; read off the class, the ufunc comes first."""
    is_bound = hasattr(real, "__self__")
    if _is_read_only(argument(0 if is_bound else 1, "a", args, kwargs)):
        raise ValueError("assignment destination is read-only")
    return real(*args, **kwargs)


def keeping_inputs(real: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a function that overwrites no array despite ``overwrite_a=``; None if it has none such."""
    try:
        signature = inspect.signature(real)
    except (TypeError, ValueError):  # a class, or compiled
        return None
    names = [name for name in signature.parameters if name.startswith("overwrite_")]
    if not names:
        return None

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments.update(dict.fromkeys(names, False))
        return real(*bound.args, **bound.kwargs)

    return guarded(real, guard)


def keeping_read_only(real: Callable[..., Any]) -> Callable[..., Any]:
    """Make a library function work on copies of read-only arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if asking() is None:
            return real(*args, **kwargs)
        return real(*map(_writable, args), **{name: _writable(value) for name, value in kwargs.items()})

    return call


def _writable(value: Any) -> Any:
    return value.copy("K") if _is_read_only(value) else value
