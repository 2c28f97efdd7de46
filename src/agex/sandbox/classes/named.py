"""Members of classes that are told their name: those of another class are not told a second one.

Making a class calls ``__set_name__`` of what is in its namespace. A descriptor of the host's keeps by that
under which private name an object has its value, for the class too that it was made for.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from agex._interpreter.type_slots import mro_of, name_of, namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.runtime import provenance as origins

__all__ = ["check"]


def check(namespace: dict[str, Any], class_name: Any) -> None:
    """Refuse what a class of the host's has already."""
    told: dict[int, str] = {}
    for name, value in dict.items(namespace):
        kind = type(value)
        if kind is not types.FunctionType and kind is not str and _is_told(kind):
            told.update((id(each), name) for each in _told(value))
    found = _owner(told) if told else None
    if found is not None:
        owner, name = found
        raise SandboxTypeError(
            f"class {class_name} cannot have {name}: it is a member of {name_of(owner)}, which would be told "
            "another name; make one of your own"
        )


def _is_told(kind: type) -> bool:
    """Tell whether Python code of the host's is told the name of an object."""
    part = next((part for part in mro_of(kind) if "__set_name__" in namespace_of(part)), None)
    if part is None or part is functools.cached_property:  # which takes no second name
        return False
    is_ours = origins.is_guest_class(part) or instead.is_ours(part)
    return not is_ours and type(namespace_of(part)["__set_name__"]) is types.FunctionType


def _told(value: Any) -> list[Any]:
    """Give what is told: a field hands the name on to its default."""
    try:
        default = object.__getattribute__(value, "default")
    except AttributeError:
        return [value]
    held = [default] if _is_told(type(default)) else []
    return held if hasattr(type(value), "default_factory") else [value, *held]


def _owner(told: dict[int, str]) -> tuple[type, str] | None:
    """Find a class of the host's that has one of these members; it takes milliseconds."""
    classes, seen = [object], set[int]()
    while classes:
        class_ = classes.pop()
        if id(class_) in seen:
            continue
        seen.add(id(class_))
        classes += type.__subclasses__(class_)
        members = list(map(id, list(namespace_of(class_).values())))
        if not told.keys().isdisjoint(members) and not origins.is_guest_class(class_):
            return class_, next(told[each] for each in members if each in told)
    return None
