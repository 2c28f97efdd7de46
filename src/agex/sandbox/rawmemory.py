"""No address of memory from an object of the guest.

numpy asks any object for ``__array_interface__`` and believes the address it is told; that
would be a pointer to anywhere. So objects of guest classes never have that attribute, by
whatever way it was put there: in the class, in an instance's dict, by ``__getattr__``.
"""

from __future__ import annotations

import functools
import types
import typing
from typing import Any, NoReturn

from agex.errors import SandboxTypeError
from agex.sandbox import instead
from agex.sandbox.memo import shut
from agex.typeslots import mro_of, namespace_of

__all__ = ["NAMES", "NOWHERE", "SimpleNamespace", "is_namespace", "keep_from"]

NAMES = ("__array_interface__", "__array_struct__")


class _Nowhere:
    """A data descriptor, which comes before an instance's dict."""

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise AttributeError("raw memory is not available; give __array__ instead")

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise AttributeError("raw memory is not available; give __array__ instead")


NOWHERE = _Nowhere()
_UNANSWERED = frozenset({*NAMES, "__deepcopy__", "__setstate__"})


def keep_from(class_: type) -> None:
    """See to it that instances of a class answer no such name."""
    if issubclass(class_, type):
        return  # on a metaclass it would stand before the classes' own
    namespace = namespace_of(class_)
    metaclass: type = type(class_)
    if metaclass is not type and any(
        name in namespace_of(part) for part in mro_of(metaclass) for name in NAMES
    ):
        raise SandboxTypeError(
            f"the metaclass of class {class_.__name__} cannot also be a subclass of an ordinary class; "
            "make it two classes"
        )
    for hook in ("__getattr__", "__getattribute__"):
        if type(namespace.get(hook)) is types.FunctionType:
            type.__setattr__(class_, hook, _filtered(namespace[hook]))
    if type(deepcopy := namespace.get("__deepcopy__")) is types.FunctionType:
        type.__setattr__(class_, "__deepcopy__", _without_memo(deepcopy))
    if typing.Protocol in mro_of(class_):
        _leave_out_of_protocols()
    for name in NAMES:
        type.__setattr__(class_, name, NOWHERE)


def _leave_out_of_protocols() -> None:
    """Let ``typing`` count the names among those that are no member of a protocol."""
    known: Any = typing.EXCLUDED_ATTRIBUTES  # type: ignore[attr-defined]  # a list or a frozenset, by version
    if NAMES[0] not in known:
        typing.EXCLUDED_ATTRIBUTES = type(known)([*known, *NAMES])  # type: ignore[attr-defined]


def _filtered(hook: types.FunctionType) -> types.FunctionType:
    @functools.wraps(hook)
    def answer(self: object, name: str) -> Any:
        if name in _UNANSWERED:
            raise AttributeError(name)
        return hook(self, name)

    return answer  # type: ignore[return-value]  # a function is one


def _without_memo(hook: types.FunctionType) -> types.FunctionType:
    @functools.wraps(hook)
    def answer(self: object, memo: Any = None, /) -> Any:
        return hook(self, shut(memo))

    return answer  # type: ignore[return-value]  # a function is one


class SimpleNamespace(types.SimpleNamespace):
    """``types.SimpleNamespace``, whose attributes may have any name."""

    __array_interface__ = NOWHERE
    __array_struct__ = NOWHERE

    def __repr__(self) -> str:
        return f"namespace{super().__repr__().removeprefix(type(self).__name__)}"


def is_namespace(value: object) -> bool:
    """Tell whether a value is a namespace that a guest made: the host's are of the real class."""
    return type(value) is SimpleNamespace


SimpleNamespace.__module__ = "types"
instead.stands_for(types.SimpleNamespace, SimpleNamespace)
