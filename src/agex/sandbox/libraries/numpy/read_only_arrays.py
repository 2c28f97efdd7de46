"""Memory that nobody may write, and compiled code that does not ask whether it may.

An array over ``bytes`` is read-only, as are those by which matplotlib draws or that Arrow hands out.
Some functions write into whatever they are given: the bytes of the host change, under a hash that was taken
before, or offsets that other compiled code follows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from agex.sandbox.libraries.argument_checks import argument, guarded
from agex.sandbox.policy.homes import Guard
from agex.sandbox.runtime.context import asking

__all__ = ["at_positions", "into", "keeping_inputs", "keeping_read_only"]


def _is_read_only(value: Any) -> bool:
    ndarray: Any = import_module("numpy").ndarray

    return isinstance(value, ndarray) and not ndarray.flags.__get__(value).writeable


def into(position: int, keyword: str) -> Guard:
    """Make the guard of a function that writes into an array: one that may be written."""

    def guard(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if _is_read_only(argument(position, keyword, args, kwargs)):
            raise ValueError("output array is read-only")
        return real(*args, **kwargs)

    return guard


def at_positions(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Guard ``ufunc.at``, which writes into its first array; off the class, the ufunc stands before it."""
    is_bound = hasattr(real, "__self__")
    if _is_read_only(argument(0 if is_bound else 1, "a", args, kwargs)):
        raise ValueError("assignment destination is read-only")
    return real(*args, **kwargs)


def keeping_inputs(real: Callable[..., Any]) -> Callable[..., Any] | None:
    """Give a function that keeps its arrays, whatever ``overwrite_a=`` says; None if it takes no such."""
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
    """Have a function of a library work on copies of arrays that may not be written."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if asking() is None:
            return real(*args, **kwargs)
        return real(*map(_writable, args), **{name: _writable(value) for name, value in kwargs.items()})

    return call


def _writable(value: Any) -> Any:
    return value.copy("K") if _is_read_only(value) else value
