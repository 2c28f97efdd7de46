"""The namespace of a class, as ``vars(class_)`` shows it."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxAttributeError
from agex.sandbox.classes import generic_classes, unsafe_protocols
from agex.sandbox.rules import names as ledger

__all__ = ["AttributeReader", "Inert", "shown_namespace", "standard_namespace"]


class AttributeReader(Protocol):
    """The guards of a session, of which a view needs these alone."""

    def getattr(self, receiver: Any, name: Any, /, *default: Any) -> Any:
        """Do the work of ``getattr`` for guest code."""

    def is_listed(self, value: Any, name: str) -> bool:
        """Return whether ``dir`` shows guest code a name."""
        ...

    def is_guest_function(self, function: Any) -> bool:
        """Return whether guest code made a function."""
        ...


def shown_namespace(guards: AttributeReader, class_: type) -> Mapping[str, Any]:
    """Return the names of a guest class as a copy: the mapping behind a proxy can be reached."""
    names = {
        name: _shown(guards, class_, name, value)
        for name, value in namespace_of(class_).items()
        if not unsafe_protocols.is_kept(value)
        and name not in ledger.DENIED
        and value is not generic_classes.MAKER
    }
    if type(fields := names.get("__dataclass_fields__")) is dict:
        names["__dataclass_fields__"] = dict(fields)
    return types.MappingProxyType(names)


def standard_namespace(guards: AttributeReader, class_: type) -> Mapping[str, Any]:
    """Return the names of a standard class that ``dir`` lists; unreadable descriptors are `Inert`."""
    names: dict[str, Any] = {}
    for name, value in namespace_of(class_).items():
        if guards.is_listed(class_, name):
            with contextlib.suppress(SandboxAttributeError):
                names[name] = _readable(guards, class_, name, value)
    return types.MappingProxyType(names)


def _readable(guards: AttributeReader, class_: type, name: str, value: Any) -> Any:
    kind = type(value)
    is_descriptor = any("__get__" in namespace_of(base) for base in mro_of(kind))
    # Any other descriptor would run, or answers on the class with another object.
    if (kind in _METHODS or not is_descriptor) and (found := guards.getattr(class_, name)) is value:
        return found
    inert: Any = Inert(kind, value.__doc__)
    return kind(inert) if kind in (classmethod, staticmethod) else inert


_METHODS = frozenset({types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, property})


def _shown(guards: AttributeReader, class_: type, name: str, value: Any) -> Any:
    if type(value) is types.GetSetDescriptorType:
        return Inert(value, None)  # __dict__ and __weakref__ of one class work on instances of others
    if name in {"_replace", "__replace__"} and type(value) is types.FunctionType:
        return guards.getattr(class_, "_replace") if "_replace" in namespace_of(class_) else value
    if name == "__init__" and type(value) is types.FunctionType and not guards.is_guest_function(value):
        return guards.getattr(class_, name)  # the method that @dataclass wrote sets the fields of any object
    return value


# Stands for a descriptor that may not be used. Each has the docstring of that.
class Inert:  # noqa: D101
    __slots__ = ("__doc__", "_text")

    def __init__(self, shown: object, doc: str | None) -> None:
        self.__doc__, self._text = doc, repr(shown)

    def __repr__(self) -> str:
        return self._text

    def __get__(self, instance: object, owner: object = None) -> NoReturn:
        raise SandboxAttributeError(
            f"{self._text} is not available on other classes; define a property of your own"
        )
