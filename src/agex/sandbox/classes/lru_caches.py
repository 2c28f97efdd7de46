"""Functions that remember what they gave (``functools.lru_cache``), the host's and a guest's.

What one of the host's remembers is what the host computes with. A guest does not empty it; nor does an object
of a guest's that says itself what it equals come to stand there for an argument of the host's.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agex.sandbox.classes.errors import refusal
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.runtime import provenance as origins

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["clear_door", "is_memoized", "note", "of_plain"]

_Memoized: Any = type(functools.cache(lambda: None))

_of_guests: weakref.WeakSet[Any] = weakref.WeakSet()
"""Those that a guest made."""

_FLAT = (str, int, float, bool, bytes, type(None))
_NESTED = (tuple, frozenset)


def is_memoized(function: object) -> bool:
    """Tell whether a function is what ``lru_cache`` or ``cache`` makes."""
    return type(function) is _Memoized


def note(made: Any) -> Any:
    """Note that a guest made one; return it."""
    _of_guests.add(made)
    return made


def clear_door(guards: Membrane, receiver: Any, name: str) -> Any:
    """``cache_clear``: of a function of the host's, and of the class of all of them, which takes any."""
    subject = receiver.__func__ if type(receiver) is types.MethodType else receiver
    kind = type(subject)
    if issubclass(kind, type):
        is_hosts = subject is _Memoized
    elif kind is types.FunctionType:
        is_hosts = not guards.is_guest_function(subject) and hasattr(subject, name)
    else:
        is_hosts = kind is _Memoized and subject not in _of_guests
    if is_hosts:
        raise refusal(receiver, name, "what the function of the host remembers is not yours to forget")
    return receiver


def of_plain(function: Any) -> Callable[..., Any]:
    """Give a function that asks *function* anew where it is given what a guest's code speaks for."""

    def call(*args: Any, **kwargs: Any) -> Any:
        is_plain = _are_plain(args) and _are_plain(kwargs) and _are_plain(kwargs.values())
        return (function if is_plain else function.__wrapped__)(*args, **kwargs)

    functools.update_wrapper(call, function, updated=())
    del call.__wrapped__  # type: ignore[attr-defined]  # the guest may ask what decorates it for that
    vars(call).update(cache_info=function.cache_info, cache_clear=function.cache_clear)
    return call


def _are_plain(values: Iterable[Any]) -> bool:
    return all(
        is_one_of(type(value), _FLAT)
        or (_are_plain(value) if is_one_of(type(value), _NESTED) else not _is_guests(value))
        for value in values
    )


def _is_guests(value: Any) -> bool:
    """Tell whether code of a guest's says what an object equals, or a class."""
    return origins.is_guest_class(value if issubclass(type(value), type) else type(value))
