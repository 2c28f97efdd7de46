"""No address of memory from an object of the guest, and no schema.

numpy asks any object for ``__array_interface__`` and believes the address it is told; that
would be a pointer to anywhere. pydantic asks for ``__get_pydantic_core_schema__``, and reads by what it
gives private attributes of others. So objects of guest classes never have those attributes, by
whatever way they were put there: in the class, in an instance's dict, by ``__getattr__``.
"""

from __future__ import annotations

import types
import typing
from typing import Any, NoReturn

from agex.errors import SandboxTypeError
from agex.sandbox import answers, instead
from agex.sandbox.identity import is_one_of
from agex.typeslots import mro_of, name_of, namespace_of

__all__ = ["NAMES", "NOWHERE", "SimpleNamespace", "is_namespace", "keep_from"]

NAMES = answers.RAW_MEMORY
SCHEMA = "__get_pydantic_core_schema__"


class _Nowhere:
    """A data descriptor, which comes before an instance's dict."""

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise AttributeError("neither an address of memory nor a schema is available here")

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise AttributeError("neither an address of memory nor a schema is available here")


NOWHERE = _Nowhere()


def keep_from(class_: type) -> None:
    """See to it that instances of a class answer no such name."""
    if issubclass(class_, type):
        return  # on a metaclass it would stand before the classes' own
    metaclass: type = type(class_)
    if metaclass is not type and any(
        name in namespace_of(part) for part in mro_of(metaclass) for name in NAMES
    ):
        raise SandboxTypeError(
            f"the metaclass of class {name_of(class_)} cannot also be a subclass of an ordinary class; "
            "make it two classes"
        )
    protocol: Any = typing.Protocol
    if is_one_of(protocol, mro_of(class_)):
        _leave_out_of_protocols()
    for name in NAMES:
        type.__setattr__(class_, name, NOWHERE)
    # Models of pydantic have a method for it.
    if not any(SCHEMA in namespace_of(part) for part in mro_of(class_)):
        type.__setattr__(class_, SCHEMA, NOWHERE)


def _leave_out_of_protocols() -> None:
    """Let ``typing`` count the names among those that are no member of a protocol."""
    known: Any = typing.EXCLUDED_ATTRIBUTES  # type: ignore[attr-defined]  # a list or a frozenset, by version
    if NAMES[0] not in known:
        typing.EXCLUDED_ATTRIBUTES = type(known)([*known, *NAMES, SCHEMA])  # type: ignore[attr-defined]


class SimpleNamespace(types.SimpleNamespace):
    """``types.SimpleNamespace``, whose attributes may have any name."""

    __array_interface__ = NOWHERE
    __array_struct__ = NOWHERE
    __get_pydantic_core_schema__ = NOWHERE

    def __repr__(self) -> str:
        return f"namespace{super().__repr__().removeprefix(type(self).__name__)}"


def is_namespace(value: object) -> bool:
    """Tell whether a value is a namespace that a guest made: the host's are of the real class."""
    return type(value) is SimpleNamespace


SimpleNamespace.__module__ = "types"
instead.stands_for(types.SimpleNamespace, SimpleNamespace)
