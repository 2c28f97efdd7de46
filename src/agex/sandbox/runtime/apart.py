"""Calls with variables of the context set for their length, which nothing can leave set.

What ends a context manager is Python code. A time limit that strikes there, a stack that is used up or
memory that is all taken leaves the variables as they were within, or puts old values back when a traceback
is dropped, in the midst of other work. The interpreter itself leaves a context, whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

__all__ = ["call_apart", "take_over"]

T = TypeVar("T")


def call_apart(
    values: Mapping[ContextVar[Any], Any], function: Callable[..., T], /, *args: Any, **kwargs: Any
) -> T:
    """Call a function with variables of the context set; what it sets of others stays set."""
    context = copy_context()
    try:
        return context.run(_set_and_call, values, function, args, kwargs)
    finally:
        take_over(context, values)


def _set_and_call(
    values: Mapping[ContextVar[Any], Any], function: Callable[..., T], args: Any, kwargs: Any
) -> T:
    for variable, value in values.items():
        variable.set(value)
    return function(*args, **kwargs)


def take_over(context: Context, values: Collection[ContextVar[Any]] = ()) -> None:
    """Set what a context has otherwise than the present one, but for *values*."""
    for variable, value in context.items():
        if variable.get(_UNSET) is not value and variable not in values:
            variable.set(value)


_UNSET = object()
