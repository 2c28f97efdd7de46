"""What host code calls without saying so, on objects of guest classes: behind limits between runs.

``repr(obj)``, ``obj == other`` or ``x in found`` in the host run methods that the guest
wrote, when its own time is over and its exceptions are nobody's. So while no run is on,
these methods are replaced by guarded ones; the next run begins by putting them back.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from agex.sandbox import ledger
from agex.sandbox.flags import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from agex.typeslots import namespace_of

__all__ = ["HOOKS", "Hooks", "written"]

_ASKED_FOR = {"__call__", "__enter__", "__exit__"}
"""Operators that the host uses on purpose, as it would call a method by its name."""

HOOKS = (ledger.OPERATORS - _ASKED_FOR) | {
    "__array__", "__delattr__", "__dir__", "__fspath__", "__getattr__", "__getattribute__", "__getstate__",
    "__rich__", "__setattr__", "__setstate__",
}  # fmt: skip
"""The methods that an expression or a library function calls by itself."""

_HARMLESS = (
    type(None),  # "not hashable", "not iterable"
    str,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
"""Values of a hook that run nothing of the guest's."""

Answer = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Hooks:
    """The hooks of a session's classes.

    Args:
        answer: calls a method of the guest for the host, under limits.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._shut: list[tuple[type, str, Any]] = []

    def shut(self, classes: Iterable[type]) -> None:
        """Put the guarded ones in place."""
        for class_ in classes:
            for name, value in list(namespace_of(class_).items()):
                self.shut_one(class_, name, value)

    def shut_one(self, class_: type, name: Any, value: Any) -> None:
        """Put a guarded one in the place of *value*, if that is a hook."""
        # A name may be of a class of the guest's: its __hash__ and __eq__ must not be asked.
        if type(name) is not str or name not in HOOKS or any(type(value) is kind for kind in _HARMLESS):
            return
        guarded = self._guarded(value) if type(value) is FunctionType else self._bound(name, value)
        if guarded is not None:
            _guards.add(guarded)
            vars(guarded)[_WRITTEN] = value
            self._shut.append((class_, name, value))
            type.__setattr__(class_, name, guarded)

    def open(self) -> None:
        """Put the guest's own back."""
        for class_, name, value in self._shut:
            type.__setattr__(class_, name, value)
        self._shut.clear()

    def _bound(self, name: str, value: Any) -> Callable[..., Any]:
        """Guard a hook that is no plain function: a descriptor gives the method, then that is called."""
        answer = self._answer

        def hook(self: Any, *args: Any, **kwargs: Any) -> Any:
            return answer(lambda: _get(value, self)(*args, **kwargs), (), {})

        hook.__name__ = hook.__qualname__ = name
        return hook

    def _guarded(self, method: FunctionType) -> Callable[..., Any] | None:
        if method.__code__.co_flags & _ASYNC:
            return None
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

        shut = generator if method.__code__.co_flags & CO_GENERATOR else hook
        shut.__name__, shut.__qualname__, shut.__doc__ = method.__name__, method.__qualname__, method.__doc__
        return shut


def written(value: Any) -> Any:
    """Return what the guest wrote where *value* is a guarded hook in its place; else the value."""
    return vars(value)[_WRITTEN] if type(value) is FunctionType and value in _guards else value


_WRITTEN = "_written"
"""The attribute of a guard that has what it stands for: private, so that no guest reads it there."""

_guards: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
"""A mapping to what they stand for would keep that alive, and with it the class and so the guard."""


def _get(value: Any, instance: Any) -> Any:
    """Give what reading *value* from an object gives, as the interpreter does it."""
    get = getattr(type(value), "__get__", None)
    return value if get is None else get(value, instance, type(instance))


_ASYNC = CO_COROUTINE | CO_ASYNC_GENERATOR
"""What a call of does not run yet, and is awaited on purpose."""
