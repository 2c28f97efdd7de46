"""Limits on decorators: which functions and classes they may write to, and what they may wrap."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.runtime.context import asking

__all__ = ["bare", "writing"]


def writing(decorator: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that writes to guest functions and classes only."""

    def decorate(subject: Any) -> Any:
        guards = asking()
        if isinstance(subject, (property, classmethod, staticmethod)):
            return decorator(subject)
        if guards is None or not (
            guards.is_guest_function(subject)
            or (isinstance(subject, type) and guards.classes.is_guest(subject))
        ):
            raise SandboxTypeError(
                f"{decorate.__name__}() changes what it is given; use it on your own classes and functions"
            )
        return decorator(subject)

    decorate.__name__ = decorate.__qualname__ = decorator.__name__
    return decorate


def bare(func: Any) -> Any:
    """Return a function without its namespace, which decorators copy past all rules of its class."""
    guards = asking()
    if issubclass(type(func), _BARE) or not callable(func) or guards is None or guards.is_own(func):
        return func

    def call(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        with contextlib.suppress(AttributeError):
            setattr(call, name, getattr(func, name))
    return call


_BARE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
