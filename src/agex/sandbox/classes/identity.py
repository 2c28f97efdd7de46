"""Classes that are found by what they are, where a metaclass of the guest's says what hashes and equals."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

__all__ = ["ByIdentity", "is_one_of", "is_proxy", "is_told_by", "referent"]


class ByIdentity:
    """The guest's own classes, where a metaclass of the guest defines what hashes and equals.

    No metaclass is among them: its objects are classes, and may be over one of the host.
    """

    __slots__ = ("_own", "_plain")

    def __init__(self, own: dict[int, type], plain: Iterable[type] = ()) -> None:
        self._own = own
        self._plain = frozenset(map(id, plain))

    def __contains__(self, class_: Any) -> bool:
        return (id(class_) in self._own and not issubclass(class_, type)) or id(class_) in self._plain


def is_one_of(class_: type, classes: Iterable[type]) -> bool:
    """Tell whether a class is in *classes*, which ``in`` would have a metaclass of the guest's say."""
    return any(class_ is each for each in classes)


def is_told_by(class_: type) -> bool:
    """Tell whether a set finds a class without asking a metaclass of the guest."""
    return type(class_).__hash__ is type.__hash__ and type(class_).__eq__ is type.__eq__


def is_proxy(class_: type) -> bool:
    """Tell whether objects of a class are weak proxies: they answer for another object in everything."""
    return class_ is weakref.ProxyType or class_ is weakref.CallableProxyType


def referent(proxy: Any) -> Any:
    """Give the object that a weak proxy answers for, by a method that no class of a guest's defines.

    Raises:
        ReferenceError: it is gone.
    """
    return proxy.__reduce_ex__.__self__
