"""Functions with a cache (``functools.lru_cache``) of the host and of guest code.

The host computes with the cached results of its functions. Guest code may not empty these caches. Nor may a
guest object, which decides itself what it equals, become a key there in place of an argument of the host.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agex.sandbox.classes.errors import refusal
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.runtime import provenance

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["clear_door", "is_memoized", "note", "of_plain"]

_Memoized: Any = type(functools.cache(lambda: None))

_of_guests: weakref.WeakSet[Any] = weakref.WeakSet()
"""Cached functions that guest code made."""

_FLAT = (str, int, float, bool, bytes, type(None))
_NESTED = (tuple, frozenset)


def is_memoized(function: object) -> bool:
    """Return whether ``lru_cache`` or ``cache`` made a function."""
    return type(function) is _Memoized


def note(made: Any) -> Any:
    """Note that guest code made a cached function, and return it."""
    _of_guests.add(made)
    return made


def clear_door(guards: Membrane, receiver: Any, name: str) -> Any:
    """Refuse ``cache_clear`` of a host function, and of the class, whose method takes any function."""
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
    """Return a cached function that uses no cache for arguments whose equality guest code decides."""

    def call(*args: Any, **kwargs: Any) -> Any:
        is_plain = _are_plain(args) and _are_plain(kwargs) and _are_plain(kwargs.values())
        return (function if is_plain else function.__wrapped__)(*args, **kwargs)

    functools.update_wrapper(call, function, updated=())
    del call.__wrapped__  # type: ignore[attr-defined]  # guest code could read it
    vars(call).update(cache_info=function.cache_info, cache_clear=function.cache_clear)
    return call


def _are_plain(values: Iterable[Any]) -> bool:
    return all(
        is_one_of(type(value), _FLAT)
        or (_are_plain(value) if is_one_of(type(value), _NESTED) else not _is_guests(value))
        for value in values
    )


def _is_guests(value: Any) -> bool:
    """Return whether guest code decides what an object or a class equals."""
    return provenance.is_guest_class(value if issubclass(type(value), type) else type(value))
