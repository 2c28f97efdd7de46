"""Where a class is at home: the library, and its name there."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from agex._interpreter.type_slots import module_of, mro_of, qualname_of
from agex.sandbox.classes.errors import check_keywords
from agex.sandbox.runtime import provenance as origins

__all__ = ["Guard", "PathGuard", "guarded", "homes"]

Guard: TypeAlias = Callable[..., Any]
"""Called as ``guard(real, *args, **kwargs)``; checks the arguments and calls *real*, or raises."""


class PathGuard(abc.ABC):
    """A guard of a function that takes a path."""

    @abc.abstractmethod
    def __call__(self, real: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Check the arguments and call the function."""

    @abc.abstractmethod
    def opened(self) -> Guard:
        """Return the guard for a function to which the host opened its files."""


def guarded(real: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """Return a module's function behind a guard."""

    def call(*args: Any, **kwargs: Any) -> Any:
        check_keywords(kwargs)
        return guard(real, *args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(real, "__name__", "call")
    call.__doc__ = real.__doc__
    return call


def homes(class_: type) -> Iterator[tuple[str, str]]:
    """Give, for a class and its bases, the library and the class's name in it."""
    # By name, not by identity: no library has to be imported, and a class keeps its name when it moves.
    for base in mro_of(class_):
        if origins.is_guest_class(base):  # it may say what it likes
            continue
        module = module_of(base)
        if type(module) is str:
            yield module.partition(".")[0].lstrip("_"), qualname_of(base)
