"""Generic aliases of the standard library, without the real ``type`` in or behind them."""

from __future__ import annotations

import types
import typing
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.classes import class_registry as classes
from agex.sandbox.classes import generic_classes as generic
from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.runtime import provenance as origins

__all__ = ["ALIAS_OWN", "TYPING", "GenericAlias", "is_alias", "origin_of"]


class _AliasMeta(type):
    """The metaclass of `GenericAlias`: what it makes are real aliases."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _AliasMeta:
        if bases:
            raise SandboxTypeError(f"{bases[0].__name__} cannot be subclassed here; give __class_getitem__")
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, origin: Any, args: Any, /) -> Any:
        if not issubclass(type(origin), type):
            raise SandboxTypeError(f"an alias must be one of a class, got {type(origin).__name__}")
        if issubclass(origin, type):
            return generic.Alias(classes.stand_in(origin), args)
        kind = generic.Alias if origins.is_guest_class(origin) else types.GenericAlias
        return kind(origin, args)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, types.GenericAlias)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return id(subclass) == id(cls) or issubclass(subclass, types.GenericAlias)


class GenericAlias(metaclass=_AliasMeta):
    """``types.GenericAlias``, of classes: an alias hands on what it is asked for to what it is one of."""


instead.stands_for(types.GenericAlias, GenericAlias)
instead.stands_for(generic.Alias, GenericAlias)
instead.closed(typing.ForwardRef)  # its private methods evaluate its text, with the interpreter's builtins


def get_origin(tp: Any) -> Any:
    """Do what ``typing.get_origin`` does."""
    return _shown(typing.get_origin(tp))


def get_args(tp: Any) -> tuple[Any, ...]:
    """Do what ``typing.get_args`` does."""
    return tuple(map(_shown, typing.get_args(tp)))


def _shown(value: Any) -> Any:
    """Give a metaclass as the guest may hold it, and anything else as it is."""
    return classes.as_shown(value)


def _type_alias() -> Any:
    alias: Any = vars(typing)["Type"]
    return type(alias)(classes.GuestType, 1, inst=False, name="Type")


TYPING: dict[str, Any] = {"Type": _type_alias(), "get_args": get_args, "get_origin": get_origin}
"""The members of ``typing`` that would give the real ``type``."""


def origin_of(receiver: Any) -> Any:
    """Give what an alias such as ``list[int]`` stands for, and hands attributes on to; else the receiver."""
    while True:
        # Of the type itself, which is not asked: a metaclass of the guest would say that it is any other.
        kind = type(receiver)
        if issubclass(kind, types.GenericAlias):
            receiver = _ORIGIN(receiver)
        elif issubclass(kind, _TYPING_ALIAS):
            receiver = object.__getattribute__(receiver, "__origin__")
        else:
            return receiver


ALIAS_OWN = frozenset({"__origin__", "__args__", "__metadata__", "__parameters__", "__class__"})
"""What an alias answers itself."""


def is_alias(receiver: Any) -> bool:
    """Tell whether stores on an object go to another one."""
    return origin_of(receiver) is not receiver


_ORIGIN = vars(types.GenericAlias)["__origin__"].__get__
_TYPING_ALIAS: type = typing._BaseGenericAlias  # type: ignore[attr-defined]  # what all of them derive from
