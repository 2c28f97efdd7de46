"""What host code calls without saying so, on objects of guest classes: behind limits between runs.

``repr(obj)``, ``obj == other`` or ``x in found`` in the host run methods that the guest
wrote, when its own time is over and its exceptions are nobody's. So while no run is on,
these methods are replaced by guarded ones; the next run begins by putting them back.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from agex.sandbox import ledger

__all__ = ["HOOKS", "Hooks"]

_ASKED_FOR = {"__call__", "__enter__", "__exit__"}
"""Operators that the host uses on purpose, as it would call a method by its name."""

HOOKS = (ledger.OPERATORS - _ASKED_FOR) | {
    "__array__", "__delattr__", "__dir__", "__fspath__", "__getattr__", "__getattribute__", "__getstate__",
    "__rich__", "__setattr__", "__setstate__",
}  # fmt: skip
"""The methods that an expression or a library function calls by itself."""

Answer = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Hooks:
    """The hooks of a session's classes.

    Args:
        answer: calls a method of the guest for the host, under limits.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._shut: list[tuple[type, str, FunctionType]] = []

    def shut(self, classes: Iterable[type]) -> None:
        """Put the guarded ones in place."""
        for class_ in classes:
            for name, value in list(type.__dict__["__dict__"].__get__(class_).items()):
                if name in HOOKS and type(value) is FunctionType and not value.__code__.co_flags & _ASYNC:
                    self._shut.append((class_, name, value))
                    type.__setattr__(class_, name, self._guarded(value))

    def open(self) -> None:
        """Put the guest's own back."""
        for class_, name, value in self._shut:
            type.__setattr__(class_, name, value)
        self._shut.clear()

    def _guarded(self, method: FunctionType) -> Callable[..., Any]:
        answer = self._answer

        def hook(*args: Any, **kwargs: Any) -> Any:
            return answer(method, args, kwargs)

        def generator(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            while True:
                try:
                    value = answer(made.__next__, (), {})
                except StopIteration:
                    return
                yield value

        shut = generator if method.__code__.co_flags & inspect.CO_GENERATOR else hook
        shut.__name__, shut.__qualname__, shut.__doc__ = method.__name__, method.__qualname__, method.__doc__
        return shut


_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""What a call of does not run yet, and is awaited on purpose."""
