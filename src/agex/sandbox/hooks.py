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

__all__ = ["HOOKS", "Hooks"]

HOOKS = frozenset(
    f"__{name}__"
    for name in (
        "array bool bytes complex contains copy deepcopy delattr dir eq float format fspath ge getattr "
        "getattribute getitem getstate gt hash index instancecheck int iter le len length_hint lt ne next "
        "repr reversed rich setattr setstate sizeof str subclasscheck"
    ).split()
)
"""The methods that an expression or a library function calls by itself."""

Answer = Callable[[FunctionType, tuple[Any, ...], dict[str, Any]], Any]


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
                if name in HOOKS and type(value) is FunctionType and not _is_lazy(value):
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

        hook.__name__, hook.__qualname__ = method.__name__, method.__qualname__
        hook.__doc__ = method.__doc__
        return hook


def _is_lazy(method: FunctionType) -> bool:
    """Tell whether a call runs nothing yet."""
    return bool(
        method.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    )
