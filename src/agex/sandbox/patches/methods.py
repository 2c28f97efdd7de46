"""A check of ``self`` for methods of the standard library that write to it.

A method written in Python takes any object for ``self``: ``asyncio.Event.clear(x)`` sets ``x._value`` on any
object. Such methods are replaced, once a process, by functions that check the class first, as C methods do.
``pprint`` finds its printers by ``__repr__`` of any object, so these are checked as well.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.sandbox.rules.code_flags import CO_COROUTINE

__all__ = ["LATE", "hold", "install"]


def install() -> None:
    """Check the methods of modules that are always loaded, once a process."""
    hold(collections.UserDict, "__ior__", "copy")
    hold(collections.UserList, "__iadd__", "__imul__")
    hold(mro_of(contextlib.ExitStack)[1], "pop_all")


def hold(class_: type, *names: str) -> None:
    """Make methods of a class accept objects of that class only."""
    for name in names:
        real = namespace_of(class_)[name]
        if not hasattr(real, "__wrapped__"):
            type.__setattr__(class_, name, _of_class(class_, real))


def _of_class(class_: type, real: Any) -> Callable[..., Any]:
    def check(self: Any) -> None:
        if not issubclass(type(self), class_):
            raise TypeError(
                f"descriptor '{real.__name__}' for '{class_.__name__}' objects doesn't apply to a "
                f"'{type(self).__name__}' object"
            )

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        check(self)
        return real(self, *args, **kwargs)

    async def coroutine(self: Any, *args: Any, **kwargs: Any) -> Any:
        check(self)
        return await real(self, *args, **kwargs)

    return functools.wraps(real)(coroutine if real.__code__.co_flags & CO_COROUTINE else method)


@functools.cache
def _hold_calendar() -> dict[str, Any]:
    import calendar

    hold(calendar.Calendar, "setfirstweekday")
    return {}


@functools.cache
def _hold_difflib() -> dict[str, Any]:
    import difflib

    hold(difflib.SequenceMatcher, "set_seq1", "set_seq2", "set_seqs")
    return {}


@functools.cache
def _hold_random() -> dict[str, Any]:
    import random

    hold(random.Random, "setstate")
    return {}


@functools.cache
def _hold_pprint() -> dict[str, Any]:
    import pprint

    shown: Any = vars(pprint.PrettyPrinter)["_dispatch"]
    shown.update((written, _of_what_writes(written, show)) for written, show in list(shown.items()))
    return {}


def _of_what_writes(written: Any, show: Callable[..., None]) -> Callable[..., None]:
    """Return a printer that accepts only objects of the class whose ``__repr__`` is *written*."""
    named = vars(sys.modules[getattr(written, "__module__", "builtins")])
    owner = getattr(written, "__objclass__", None) or named[written.__qualname__.partition(".")[0]]

    @functools.wraps(show)
    def shown(self: Any, object: Any, stream: Any, *rest: Any) -> None:  # noqa: A002 - its name there
        if issubclass(type(object), owner):
            show(self, object, stream, *rest)
        else:
            stream.write(repr(object))

    return shown


LATE: dict[str, Callable[[], dict[str, Any]]] = {
    "calendar": _hold_calendar,
    "difflib": _hold_difflib,
    "pprint": _hold_pprint,
    "secrets": _hold_random,
}
"""Installs the checks of modules that guest code imports; they add no member."""
