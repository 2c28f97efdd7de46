"""Tables made of dataclass objects, by the fields that guest code may read.

The library itself would unpack all fields, also private fields of host objects and fields that a registration
excludes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from agex._interpreter.type_slots import mro_of, name_of, namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes import host_classes
from agex.sandbox.runtime import context, provenance
from agex.sandbox.stdlib import dataclasses as dataclass

__all__ = ["unpacked", "unpacked_first"]


def unpacked(real: Any) -> Any:
    """Replace a function that returns the fields of objects as dictionaries."""

    def unpack(data: Iterable[Any]) -> Any:
        is_hosts = context.calling() is None
        return real(data) if is_hosts else list(map(dataclass.asdict, data))

    return unpack


def unpacked_first(real: Any) -> Any:
    """Replace a function that makes a table of objects, and check these before.

    Guest code that ran in between could put other objects into them.
    """

    def make(first: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        if context.calling() is None:
            return real(first, data, *args, **kwargs)
        for each in data:
            if not _is_still(each):
                raise SandboxTypeError(
                    f"a table is made of objects with plain values, got {name_of(type(each))}; "
                    "use [dataclasses.asdict(x) for x in objects]"
                )
            dataclass.asdict(each)
        return real(first, data, *args, **kwargs)

    return make


def _is_still(value: Any) -> bool:
    """Return whether unpacking a value runs no guest code."""
    class_ = type(value)
    if class_ is list or class_ is tuple:
        return all(map(_is_still, value))
    if class_ is dict:
        return all(map(_is_still, value)) and all(map(_is_still, value.values()))
    if host_classes.is_static(class_):
        return True
    if not dataclasses.is_dataclass(class_):
        return not provenance.is_guest_class(class_)
    return _is_plain(class_) and all(
        _is_still(object.__getattribute__(value, each.name)) for each in dataclasses.fields(class_)
    )


def _is_plain(class_: type) -> bool:
    """Return whether the fields of a class are read without guest code."""
    names = {each.name for each in dataclasses.fields(class_)} | {"__getattribute__", "__getattr__"}
    for part in filter(provenance.is_guest_class, mro_of(class_)):
        for name in names & namespace_of(part).keys():
            if not host_classes.is_static(type(namespace_of(part)[name])) or name.startswith("__getattr"):
                return False
            if isinstance(namespace_of(part)[name], property):
                return False
    return True
