"""Checks of a strict policy at every attribute, beyond the contested names.

A function of a host class takes any object for ``self``: ``Client.connect(x)`` would put private state of
clients into a guest object, ``Event.is_set(x)`` reads a private name of any object. So a function that is
read from a class takes instances of that class only, as C code does.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes import host_classes
from agex.sandbox.classes.errors import described
from agex.sandbox.classes.super_lookup import super_answers, super_self
from agex.sandbox.guards.receivers import Door

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["defines", "held"]


def defines(guards: Guards, receiver: Any, name: str) -> bool:
    """Return whether a guest class in a mixed class answers for a receiver."""
    class_ = receiver if issubclass(type(receiver), type) else type(receiver)
    if not guards.classes.is_mixed(class_):
        return False
    # An attribute that host code put into the object comes first.
    if class_ is not receiver and name in getattr(receiver, "__dict__", ()):
        return False
    parts = mro_of(class_)
    part = next((part for part in parts if name in namespace_of(part)), object)
    if not guards.classes.is_guest(part):
        return False
    # If a guest property fails, __getattr__ of the host class answers.
    hooked = any("__getattr__" in namespace_of(each) for each in parts if not guards.classes.is_guest(each))
    kind = type(namespace_of(part)[name])
    return not hooked or kind is types.FunctionType or not host_classes.has(kind, "__get__")


def held(guards: Guards, receiver: Any, name: str, given: Any) -> Any:
    """Return *given*, or a door with a guard that limits a method of a class to its instances."""
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
        # Kept with the real one, so that nothing else gets its id; the guard keeps the class.
        known = guards.held[key] = value, hold(owner, name, value)
    return Door(known[1])


def _method(owner: type, name: str, real: Any) -> Any:
    """Return a function that takes instances of *owner* only."""

    def method(*args: Any, **kwargs: Any) -> Any:
        # An object passed by keyword would not be checked.
        if not args or not issubclass(type(args[0]), owner):
            got = f", got {described(args[0])}" if args else ""
            raise SandboxTypeError(f"{name}() of {described(owner)} takes an object of that class first{got}")
        return real(*args, **kwargs)

    functools.update_wrapper(method, real)
    del method.__wrapped__  # type: ignore[attr-defined]  # guest code could read it from the guard
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
"""Types of members that take any object, and the functions that limit them to instances."""

_HELD_ALREADY = (
    *(staticmethod, classmethod, types.ClassMethodDescriptorType, types.BuiltinFunctionType),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType),
)
"""Types of members in C, which check their objects or take none."""
_PROTOCOLS = ("collections.abc", "numbers", "typing")
"""Modules whose classes have no state, and methods for any object of a protocol."""

_MOST_HELD = 256
"""Methods that a session keeps."""
