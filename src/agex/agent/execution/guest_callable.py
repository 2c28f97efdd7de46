"""Host functions under the names that guest code knows, and the function that it wrote for its task."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from agex.models.source import parse

__all__ = ["assigns", "plain_function", "under_name"]

_CACHED = type(functools.lru_cache(lambda: None))


def under_name(name: str, function: Callable[..., Any], *, ends: bool = False) -> Callable[..., Any]:
    """Return a host function that is *name* to guest code, in its repr and in the errors of a wrong call.

    Args:
        name: what the guest calls it.
        function: what it does.
        ends: whether it takes one value to end the task, by whatever keyword: ``task_success(result=1)``.
    """
    signature = inspect.signature(function)

    def called(*args: Any, **kwargs: Any) -> Any:
        if ends and not args and len(kwargs) == 1 and kwargs.keys().isdisjoint(signature.parameters):
            args, kwargs = tuple(kwargs.values()), {}
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            several = (
                "; several values go as one tuple or dict" if ends and len(args) + len(kwargs) > 1 else ""
            )
            raise TypeError(f"{name}({', '.join(signature.parameters)}): {error}{several}") from None
        return function(*bound.args, **bound.kwargs)

    called.__name__ = called.__qualname__ = name
    called.__doc__ = function.__doc__
    called.__signature__ = signature  # type: ignore[attr-defined]  # inspect looks for it
    return called


def assigns(source: str, name: str) -> bool:
    """Return whether *source* assigns *name* at its top level, as in ``double = lambda n: 2 * n``."""
    module = parse(source) if name in source else None
    return module is not None and any(
        isinstance(one, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in one.targets)
        for one in module.body
    )


def plain_function(function: Any) -> FunctionType | None:
    """Return the function behind functools' own wrappers; None where there is another thing.

    No guest object is asked: it could answer with code.
    """
    while type(function) in {_CACHED, functools.partial}:
        function = function.func if type(function) is functools.partial else function.__wrapped__
    return function if type(function) is FunctionType else None
