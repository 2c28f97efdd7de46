"""Constructors of callables of the standard library.

Names in a stream may come from anyone who can write the store. A name leads only to objects that guest code
may use. The few functions called here build an object from their arguments, and do nothing else.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agex.errors import StateCorrupt
from agex.values.base.function_wrappers import DISPATCHER
from agex.values.base.guest_code import GuestCode
from agex.values.base.handle import Handle, unwrapped
from agex.values.base.placeholders import MODULE, NotKept
from agex.values.base.type_checks import is_a, is_class, is_function

__all__ = ["GETTERS", "LIBRARY", "CallableBuilder", "exact", "made_of", "missing", "missing_host"]

GETTERS = frozenset({"operator:attrgetter", "operator:itemgetter", "operator:methodcaller"})
"""Classes of the standard library whose instances can be called, by their names in guest code."""

LIBRARY = GETTERS | {
    "contextlib:asynccontextmanager", "contextlib:contextmanager", "functools:lru_cache",
    "functools:singledispatch",
}  # fmt: skip
"""Functions called with stored values: each only builds an object from them."""

_METHODS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip


class CallableBuilder:
    """The constructors of one load that make functions of the standard library, see `Builder`."""

    _guest: GuestCode | None
    _dressed: dict[int, Any]

    def hosts_method(self, owner: Any, name: str) -> Any:
        """Read a method of a class or a host object, in a handle."""
        owner = unwrapped(owner)
        if type(owner) is NotKept:
            return owner
        if self._guest is None:
            return missing(exact(name), "method", "no guest code can be loaded here")
        try:
            found = self._guest.method(owner, exact(name))
        except KeyError:
            found = None
        if not is_a(found, _METHODS):
            return missing(name, "method", f"{name} is no method that may be used now")
        return Handle(found)

    def getter(self, kind: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Make an ``operator.itemgetter`` or one of its siblings, in a handle."""
        if type(kind) is not str or kind not in GETTERS:
            raise StateCorrupt("a stored function that reads is of no known kind")
        made = self._of_library(kind)
        if type(made) is NotKept:
            return made
        given = {exact(name): unwrapped(each) for name, each in keywords.items()}
        return Handle(made(*map(unwrapped, args), **given))

    def comparing(self, function: Any) -> Any:
        """Call ``functools.cmp_to_key`` on a function, and put the result in a handle."""
        return made_of(function, functools.cmp_to_key)

    def property_(self, read: Any, write: Any, delete: Any, doc: str | None) -> Any:
        """Make a property, in a handle."""
        parts = [unwrapped(each) for each in (read, write, delete)]
        lost = next((each for each in parts if type(each) is NotKept), None)
        read, write, delete = parts
        return lost or Handle(property(read, write, delete, None if doc is None else exact(doc)))

    def dispatcher(self, function: Any) -> Any:
        """Call ``functools.singledispatch`` on a function, in a handle; see `fill_dispatcher`."""
        make = self._of_library("functools:singledispatch")
        made = make if type(make) is NotKept else made_of(function, make)
        if type(made) is Handle:
            self._dressed[id(made.target)] = made.target
        return made

    def fill_dispatcher(self, handle: Any, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Register the functions of a dispatcher by class; those of a missing class are left out."""
        if type(handle) is NotKept:
            return
        made = handle.target if type(handle) is Handle else None
        if id(made) not in self._dressed or not is_function(made) or made.__code__ is not DISPATCHER:
            raise StateCorrupt("a stored value registers functions with something that takes none")
        for cls, function in pairs:
            kind = unwrapped(cls)
            if is_class(kind):
                made.register(kind, unwrapped(function))  # type: ignore[attr-defined]

    def _of_library(self, name: str) -> Any:
        """Find a function of the standard set, in the version of guest code."""
        assert name in LIBRARY
        if self._guest is None:
            return missing(name, "function", "no guest code can be loaded here")
        try:
            return self._guest.host_object(name)
        except KeyError:
            return missing(name, "function", f"{name} cannot be used now")


def made_of(handle: Any, make: Callable[[Any], Any]) -> Any:
    """Build an object from the target of a handle, in a new handle; a lost target stays lost."""
    target = unwrapped(handle)
    return target if type(target) is NotKept else Handle(make(target))


def exact(name: Any) -> str:
    """Return a name as an exact `str`: a subclass written by a guest would run its own methods."""
    if type(name) is not str:
        raise StateCorrupt("a stored name is no plain text")
    return name


def missing(name: str, kind: str, reason: str) -> NotKept:
    """Return the marker of an object that cannot be made."""
    return NotKept(name, kind, reason)


def missing_host(name: str) -> NotKept:
    """Return the marker of a host object that guest code may not use now."""
    kind, _, module = name.partition(" ")
    if kind == MODULE:
        return missing(module, MODULE, f"import of {module!r} is not allowed")
    return missing(name, "object of the host", f"{name} is not registered now")
