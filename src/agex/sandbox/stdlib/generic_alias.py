"""Generic aliases of the standard library that do not lead to the real ``type``."""

from __future__ import annotations

import types
import typing
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.classes import generic_classes, guest_type, stand_ins
from agex.sandbox.runtime import provenance

__all__ = ["ALIAS_OWN", "TYPING", "GenericAlias", "is_alias", "origin_of"]


class _AliasMeta(type):
    """The metaclass of `GenericAlias`, whose calls make real aliases."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _AliasMeta:
        if bases:
            raise SandboxTypeError(f"{bases[0].__name__} cannot be subclassed here; give __class_getitem__")
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, origin: Any, args: Any, /) -> Any:
        if not issubclass(type(origin), type):
            raise SandboxTypeError(f"an alias must be one of a class, got {type(origin).__name__}")
        if issubclass(origin, type):
            return generic_classes.Alias(guest_type.stand_in(origin), args)
        kind = generic_classes.Alias if provenance.is_guest_class(origin) else types.GenericAlias
        return kind(origin, args)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, types.GenericAlias)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return id(subclass) == id(cls) or issubclass(subclass, types.GenericAlias)


class GenericAlias(metaclass=_AliasMeta):
    """``types.GenericAlias`` for classes only, because an alias forwards attribute access to its origin."""


stand_ins.stands_for(types.GenericAlias, GenericAlias)
stand_ins.stands_for(generic_classes.Alias, GenericAlias)
stand_ins.closed(typing.ForwardRef)  # its private methods evaluate text with the interpreter's builtins


def get_origin(tp: Any) -> Any:
    """Do what ``typing.get_origin`` does."""
    return _shown(typing.get_origin(tp))


def get_args(tp: Any) -> tuple[Any, ...]:
    """Do what ``typing.get_args`` does."""
    return tuple(map(_shown, typing.get_args(tp)))


def _shown(value: Any) -> Any:
    """Return the stand-in of a metaclass that guest code may hold; anything else as it is."""
    return guest_type.as_shown(value)


def _type_alias() -> Any:
    alias: Any = vars(typing)["Type"]
    return type(alias)(guest_type.GuestType, 1, inst=False, name="Type")


TYPING: dict[str, Any] = {"Type": _type_alias(), "get_args": get_args, "get_origin": get_origin}
"""The guarded members of ``typing``: the real ones would return the real ``type``."""


def origin_of(receiver: Any) -> Any:
    """Return the origin of an alias such as ``list[int]``, which answers for it; else the receiver."""
    while True:
        # By the type itself, without asking it: a guest metaclass could claim to be any other.
        kind = type(receiver)
        if issubclass(kind, types.GenericAlias):
            receiver = _ORIGIN(receiver)
        elif issubclass(kind, _TYPING_ALIAS):
            receiver = object.__getattribute__(receiver, "__origin__")
        else:
            return receiver


ALIAS_OWN = frozenset({"__origin__", "__args__", "__metadata__", "__parameters__", "__class__"})
"""The attributes that an alias answers itself."""


def is_alias(receiver: Any) -> bool:
    """Return whether stores on an object go to another one, as those on an alias do."""
    return origin_of(receiver) is not receiver


_ORIGIN = vars(types.GenericAlias)["__origin__"].__get__
_TYPING_ALIAS: type = typing._BaseGenericAlias  # type: ignore[attr-defined]  # the base of all aliases of typing
