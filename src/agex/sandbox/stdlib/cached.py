"""``functools.cached_property`` that keeps its value on the objects of its own class only.

The real one reads and writes the namespace of whatever object its ``__get__`` is given,
under the name it was last told. Put into a class under the name of a private attribute
and called by hand, it reads that attribute of an object of the host, or plants a method.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.runtime.context import asking

__all__ = ["CachedProperty"]


class CachedProperty:
    """A method that runs once for an object and whose value is kept there.

    Args:
        func: the method.
    """

    __slots__ = ("__dict__", "_func", "_name")

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func
        self._name: str | None = None
        self.__doc__ = func.__doc__
        if sys.version_info >= (3, 13):
            self.__module__ = func.__module__

    @property
    def func(self) -> Callable[[Any], Any]:
        """The method."""
        return self._func

    @property
    def attrname(self) -> str | None:
        """The name it was given in its class."""
        return self._name

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name that the class statement bound it to."""
        if self._name is None:
            self._name = name
        elif name != self._name:
            raise TypeError(
                "Cannot assign the same cached_property to two different names "
                f"({self._name!r} and {name!r})."
            )

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Give the value, from the object where it is known."""
        if instance is None:
            return self
        name: Any = _NAME(self)  # once, and not of a subclass, which could give another name each time
        if name is None:
            raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
        if type(name) is not str or not self._belongs_to(instance, name):
            raise SandboxTypeError(
                f"cached_property {name!r} belongs to no class of this object; read it as an attribute"
            )
        try:
            cache = instance.__dict__
        except AttributeError:  # __slots__ without one
            raise TypeError(
                f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {name!r} property."
            ) from None
        value = cache.get(name, _MISSING)
        if value is _MISSING:
            value = self._func(instance)
            try:
                cache[name] = value
            except TypeError:  # the namespace of a class
                raise TypeError(
                    f"The '__dict__' attribute on {type(instance).__name__!r} instance "
                    f"does not support item assignment for caching {name!r} property."
                ) from None
        return value

    def _belongs_to(self, instance: Any, name: str) -> bool:
        """Tell whether reading *name* of *instance* comes here, or its class is the guest's."""
        guards = asking()
        for base in mro_of(type(instance)):
            found = namespace_of(base).get(name, _MISSING)
            if found is not _MISSING:
                if found is self:
                    return guards is None or guards.readable(instance, name) is instance
                break
        return guards is not None and guards.classes.is_pure(type(instance))

    __class_getitem__: Any = classmethod(types.GenericAlias)


_MISSING = object()
_NAME: Callable[[CachedProperty], str | None] = vars(CachedProperty)["_name"].__get__
instead.stands_for(functools.cached_property, CachedProperty)
