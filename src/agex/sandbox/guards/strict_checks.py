"""What a strict policy asks for at every attribute, beyond the names that are contested.

A function that a class of the host holds takes any object for ``self``: ``Client.connect(x)`` would leave
in an object of the guest's what only clients hold, ``Event.is_set(x)`` reads a private name of whatever it
is given. So what is read off a class takes objects of that class alone, as what is written in C does.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes import host_classes as hostclass
from agex.sandbox.classes.errors import described
from agex.sandbox.classes.super_lookup import super_answers, super_self
from agex.sandbox.guards.receivers import Door

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["defines", "held"]


def defines(guards: Guards, receiver: Any, name: str) -> bool:
    """Return whether the guest's part of a class over one of the host answers for *receiver*."""
    class_ = receiver if issubclass(type(receiver), type) else type(receiver)
    if not guards.classes.is_mixed(class_):
        return False
    # What the host's part put into an object itself goes first.
    if class_ is not receiver and name in getattr(receiver, "__dict__", ()):
        return False
    parts = mro_of(class_)
    part = next((part for part in parts if name in namespace_of(part)), object)
    if not guards.classes.is_guest(part):
        return False
    # Where a property of the guest's fails, the host's __getattr__ is asked for the name.
    hooked = any("__getattr__" in namespace_of(each) for each in parts if not guards.classes.is_guest(each))
    kind = type(namespace_of(part)[name])
    return not hooked or kind is types.FunctionType or not hostclass.has(kind, "__get__")


def held(guards: Guards, receiver: Any, name: str, given: Any) -> Any:
    """Return what *name* is read from, *given* or else a door: a method of a class is held to its objects."""
    class_ = super_self(receiver) if issubclass(type(receiver), super) else receiver
    if not issubclass(type(class_), type):
        return given
    parts = mro_of(class_)
    owner = next((part for part in parts if name in namespace_of(part)), None)
    if class_ is not receiver:
        owner = super_answers(receiver, name)
    if owner is None or guards.classes.is_guest(owner) or module_of(owner) in _PROTOCOLS:
        return given
    if type(namespace_of(owner).get(name)) in _HELD_ALREADY:
        return given
    value = getattr(given, name)
    hold = _HOLDS.get(type(value))
    if hold is None:
        return given if given is not receiver else Door(value)
    key = id(owner), id(value)
    known = guards.held.get(key)
    if known is None:
        if len(guards.held) > _MOST_HELD:
            guards.held.clear()
        # With the real one, whose id nothing else can have then; the class is in what holds it.
        known = guards.held[key] = value, hold(owner, name, value)
    return Door(known[1])


def _method(owner: type, name: str, real: Any) -> Any:
    """Hold a function to objects of *owner*."""

    def method(*args: Any, **kwargs: Any) -> Any:
        # One that is given by its name would not have been looked at.
        if not args or not issubclass(type(args[0]), owner):
            got = f", got {described(args[0])}" if args else ""
            raise SandboxTypeError(f"{name}() of {described(owner)} takes an object of that class first{got}")
        return real(*args, **kwargs)

    functools.update_wrapper(method, real)
    del method.__wrapped__  # type: ignore[attr-defined]  # the guest may ask what decorates it for that
    return method


def _property(owner: type, name: str, real: Any) -> Any:
    get, set_, delete = (f and _method(owner, name, f) for f in (real.fget, real.fset, real.fdel))
    return property(get, set_, delete, real.__doc__)


def _cached(owner: type, name: str, real: Any) -> Any:
    made = functools.cached_property(_method(owner, name, real.func))
    made.attrname = real.attrname
    return made


_HOLDS: dict[type, Callable[[type, str, Any], Any]] = {
    types.FunctionType: _method,
    type(functools.cache(_method)): _method,
    property: _property,
    functools.cached_property: _cached,
}
"""The kinds of what a class holds that take any object, and what holds them to objects of the class."""

_HELD_ALREADY = (
    *(staticmethod, classmethod, types.ClassMethodDescriptorType, types.BuiltinFunctionType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType),
)
"""The kinds of what is written in C, which looks at its objects, or takes none."""
_PROTOCOLS = ("collections.abc", "numbers", "typing")
"""Modules whose classes have methods for any object that answers to some others, and no state."""

_MOST_HELD = 256
"""Methods that a session keeps."""
