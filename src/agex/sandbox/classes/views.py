"""The namespace of a class, as ``vars(class_)`` shows it."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxAttributeError
from agex.sandbox.classes import generic_classes as generic
from agex.sandbox.classes import unsafe_protocols as rawmemory
from agex.sandbox.classes.inert import Inert
from agex.sandbox.rules import names as ledger

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["shown_namespace", "standard_namespace"]


def shown_namespace(guards: Membrane, class_: type) -> Mapping[str, Any]:
    """Give the names of a class: a copy, because a proxy can be made to tell what it views."""
    names = {
        name: _shown(guards, class_, name, value)
        for name, value in namespace_of(class_).items()
        if not rawmemory.is_kept(value) and name not in ledger.DENIED and value is not generic.MAKER
    }
    if type(fields := names.get("__dataclass_fields__")) is dict:
        names["__dataclass_fields__"] = dict(fields)
    return types.MappingProxyType(names)


def standard_namespace(guards: Membrane, class_: type) -> Mapping[str, Any]:
    """Give the names of a class of Python's, as ``dir`` lists them; what may be read is what it is."""
    names: dict[str, Any] = {}
    for name, value in namespace_of(class_).items():
        if guards.is_listed(class_, name):
            with contextlib.suppress(SandboxAttributeError):
                names[name] = _readable(guards, class_, name, value)
    return types.MappingProxyType(names)


def _readable(guards: Membrane, class_: type, name: str, value: Any) -> Any:
    kind = type(value)
    is_descriptor = any("__get__" in namespace_of(base) for base in mro_of(kind))
    # Any other descriptor would be run, or gives something else on the class than it is.
    if (kind in _METHODS or not is_descriptor) and (found := guards.getattr(class_, name)) is value:
        return found
    inert: Any = Inert(kind, value.__doc__)
    return kind(inert) if kind in (classmethod, staticmethod) else inert


_METHODS = frozenset({types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, property})


def _shown(guards: Membrane, class_: type, name: str, value: Any) -> Any:
    if type(value) is types.GetSetDescriptorType:
        return Inert(value, None)  # __dict__ and __weakref__ of one class answer for objects of others
    if name in {"_replace", "__replace__"} and type(value) is types.FunctionType:
        return guards.getattr(class_, "_replace") if "_replace" in namespace_of(class_) else value
    if name == "__init__" and type(value) is types.FunctionType and not guards.is_guest_function(value):
        return guards.getattr(class_, name)  # what @dataclass wrote sets the fields of any object
    return value
