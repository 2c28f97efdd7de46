"""Look-ups of classes by identity: a guest metaclass may define how classes hash and compare."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

__all__ = ["ByIdentity", "is_one_of", "is_proxy", "is_told_by", "referent"]


class ByIdentity:
    """A set of the pure guest classes that never calls ``__hash__`` or ``__eq__`` of a metaclass.

    No metaclass is among them: its instances are classes, and may inherit from a host class.
    """

    __slots__ = ("_own", "_plain")

    def __init__(self, own: dict[int, type], plain: Iterable[type] = ()) -> None:
        self._own = own
        self._plain = frozenset(map(id, plain))

    def __contains__(self, class_: Any) -> bool:
        return (id(class_) in self._own and not issubclass(class_, type)) or id(class_) in self._plain


def is_one_of(class_: type, classes: Iterable[type]) -> bool:
    """Return whether a class is among others; ``in`` would call ``__eq__`` of a guest metaclass."""
    return any(class_ is each for each in classes)


def is_told_by(class_: type) -> bool:
    """Return whether a set finds a class without a call of a guest metaclass."""
    return type(class_).__hash__ is type.__hash__ and type(class_).__eq__ is type.__eq__


def is_proxy(class_: type) -> bool:
    """Return whether instances of a class are weak proxies, which answer for another object."""
    return class_ is weakref.ProxyType or class_ is weakref.CallableProxyType


def referent(proxy: Any) -> Any:
    """Return the object behind a weak proxy, by a method that no guest class defines.

    Raises:
        ReferenceError: the object is gone.
    """
    return proxy.__reduce_ex__.__self__
