"""``type`` as guest code holds it, and the stand-ins of other metaclasses.

Calling a metaclass makes a class: ``type('X', (Vault,), {...})``. So guest code never holds a metaclass
itself. It holds a stand-in: a subclass that registers each class it makes and otherwise answers for the real
metaclass.
"""

from __future__ import annotations

import abc
import enum
import functools
from typing import Any, Protocol, cast

from agex._interpreter.type_slots import module_of, mro_of
from agex.sandbox.classes import generic_classes, stand_ins
from agex.sandbox.classes import namespace as members
from agex.sandbox.runtime.context import asking, maker

__all__ = [
    "PLAIN",
    "GuestType",
    "StandInMeta",
    "as_shown",
    "call",
    "exact_bases",
    "real_metaclass",
    "stand_in",
    "type_of",
]

PLAIN = frozenset(
    (int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, range, type(None))
)
"""Types whose uncontested members are known to be harmless."""


class _ClassMaker(Protocol):
    """The part of a session's registry that makes classes."""

    def reconcile(self, metaclass: Any, bases: Any, name: Any = "") -> None:
        """Check the metaclasses of a class to be made."""

    def makes_new(self, *makers: Any) -> bool:
        """Return whether these metaclasses make a new class when called."""
        ...

    def create(
        self, metaclass: Any, makes_new: bool, name: Any, bases: Any, namespace: Any, /, **kwargs: Any
    ) -> Any:
        """Call a metaclass and register the class that it makes."""


def exact_bases(bases: Any) -> tuple[Any, ...]:
    """Return the bases that the interpreter sees; a guest subclass of tuple may iterate over others."""
    return tuple(tuple.__iter__(bases)) if isinstance(bases, tuple) else ()


class StandInMeta(type):
    """The metaclass of stand-ins, and of the metaclasses that guest code derives from them."""

    def __call__(cls, /, *args: Any, **kwargs: Any) -> Any:
        if cls is GuestType and len(args) == 1 and not kwargs:
            return type_of(args[0])
        real = _REAL.get(cls) or cls
        if len(args) != 3 or type not in mro_of(cls):
            members.check_maker(real)
            return type.__call__(real, *args, **kwargs)
        registry = cast("_ClassMaker", maker(cls.__name__).classes)  # there is no other kind
        registry.reconcile(cls, args[1], args[0])
        made = registry.makes_new(real)
        return registry.create(functools.partial(type.__call__, real), made, *args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        real = _REAL.get(cls)
        return isinstance(instance, real) if real else type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real = _REAL.get(cls)
        return issubclass(subclass, real) if real else type.__subclasscheck__(cls, subclass)

    def __repr__(cls) -> str:
        return type.__repr__(_REAL.get(cls, cls))


class GuestType(type, metaclass=StandInMeta):
    """The ``type`` of guest code."""

    def __class_getitem__(cls, item: Any) -> Any:
        if cls is not GuestType:
            raise TypeError(f"type '{cls.__name__}' is not subscriptable")
        return generic_classes.Alias(GuestType, item)


for _shown in (GuestType, StandInMeta):
    _shown.__name__ = _shown.__qualname__ = "type"
    _shown.__module__ = "builtins"

_REAL: dict[type, type] = {GuestType: type}
_STAND_IN: dict[type, type] = {type: GuestType}


def stand_in(metaclass: type) -> type:
    """Return the stand-in of a metaclass; that of `type` for a metaclass of the sandbox itself."""
    if issubclass(type(metaclass), StandInMeta):
        return metaclass
    if metaclass is StandInMeta or str(module_of(metaclass)).startswith("agex.sandbox."):
        return GuestType
    found = _STAND_IN.get(metaclass)
    if found is None:
        bases = StandInMeta if type(metaclass) is type else type("_Meta", (StandInMeta, type(metaclass)), {})
        found = type.__call__(bases, metaclass.__name__, (metaclass,), {"__module__": metaclass.__module__})
        _REAL[found] = metaclass  # before the line below: if interrupted in between, it is made again
        _STAND_IN[metaclass] = found
    return found


def as_shown(value: Any) -> Any:
    """Return a value as guest code may hold it: metaclasses and sealed classes by their stand-ins."""
    if type(value) is tuple:
        return tuple(map(as_shown, value))
    if not issubclass(type(value), type):
        return value
    guards = asking()
    if issubclass(value, type):
        return stand_in(value)
    return value if guards is None else guards.shown_class(value)


def call(class_: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Do what ``type.__call__(class_, ...)`` does, with a check of the class that a metaclass makes."""
    if issubclass(type(class_), type) and issubclass(class_, type):
        stands: Any = stand_in(class_)
        return StandInMeta.__call__(stands, *args, **kwargs)
    return type.__call__(class_, *args, **kwargs)


def real_metaclass(class_: type) -> type:
    """Return the metaclass behind a stand-in, and any other class as it is."""
    return _REAL.get(class_, class_)


def type_of(value: object) -> type:
    """Do what ``type(value)`` does, without handing out a metaclass or a sealed class."""
    found = type(value)
    if type(found) is type and found in PLAIN:
        return found
    if issubclass(found, type):
        return stand_in(found)
    found = stand_ins.shown(found)
    guards = asking()
    return found if guards is None else guards.shown_class(found)


for _metaclass in (abc.ABCMeta, enum.EnumType):
    stand_in(_metaclass)
