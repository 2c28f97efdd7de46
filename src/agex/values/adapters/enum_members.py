"""Members of guest enumerations: their values and their attributes.

A class comes back by its statement, which may compute other values than before. So the value of each member
is kept beside the class and restored; where that is impossible, the class is lost.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agex.values.adapters.instances import attributes_of
from agex.values.base.handle import unwrapped
from agex.values.base.placeholders import NotKept
from agex.values.base.shared_objects import ATOMS
from agex.values.base.type_checks import is_a

__all__ = ["parts", "restore", "take"]

_OWN = frozenset({"_value_", "_name_", "__objclass__", "_sort_order_"})
"""Attributes that ``enum`` itself sets on a member."""

Kept = tuple[str, tuple[Any, ...], dict[str, Any]]


def parts(cls: type, keeps: Callable[[type], bool]) -> Iterator[Any]:
    """Return the objects of a class's members that are kept; none for a class that is no enumeration."""
    for _, value, attributes in _members(cls, keeps).values():
        yield from (*value, *attributes.values())


def take(cls: type, keeps: Callable[[type], bool], top: Callable[[Any], Any]) -> dict[str, Kept]:
    """Return the members of an enumeration, in the form that `restore` takes."""
    return {
        name: (own_name, tuple(map(top, value)), {key: top(each) for key, each in attributes.items()})
        for name, (own_name, value, attributes) in _members(cls, keeps).items()
    }


def _members(cls: type, keeps: Callable[[type], bool]) -> dict[str, Kept]:
    """Return by name: the name of the member (another for an alias), its value, and its attributes.

    A value that no store can keep is left out: ``A = object()`` is another object each time.
    """
    if not is_a(cls, enum.EnumMeta):
        return {}

    def is_kept(value: Any) -> bool:
        return type(value) in ATOMS or keeps(type(value))

    found: dict[str, Kept] = {}
    for name, member in vars(cls)["_member_map_"].items():
        own = attributes_of(member)
        value = (own["_value_"],) if is_kept(own["_value_"]) else ()
        given = {key: each for key, each in own.items() if key not in _OWN and is_kept(each)}
        found[name] = (own["_name_"], value, given)
    return found


def restore(cls: Any, members: Mapping[str, Kept]) -> str:
    """Restore the values of an enumeration's members; return the reason where that is impossible."""
    made = vars(cls)["_member_map_"]
    names = {name: attributes_of(member)["_name_"] for name, member in made.items()}
    if names != {name: kept[0] for name, kept in members.items()}:
        return "its statement makes other members now"
    for name, (_, value, attributes) in members.items():
        own = attributes_of(made[name])
        for each in map(unwrapped, value):
            if not _is_same(own["_value_"], each):
                if issubclass(cls, enum.Flag) or (cls._member_type_ is not object and type(each) in ATOMS):
                    return f"its statement gives {name} another value now"
                _put(cls, made[name], own["_value_"], each)
        for key, each in attributes.items():
            if key not in _OWN and type(each) is not NotKept:
                own[key] = unwrapped(each)
    return ""


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same constant, or the second is no known constant."""
    if type(other) is NotKept:
        return True
    return type(one) is type(other) and type(one) in ATOMS and bool(one == other or one != one)  # noqa: PLR0124


def _put(cls: Any, member: Any, before: Any, value: Any) -> None:
    """Set the value of a member, and let the enumeration find it by that value."""
    attributes_of(member)["_value_"] = value
    if type(before) not in ATOMS or type(value) not in ATOMS:  # it could call a hash of a guest class
        return
    by_value = cls._value2member_map_
    if by_value.get(before) is member:
        del by_value[before]
    by_value[value] = member
    hashable = vars(cls).get("_hashable_values_", [])  # since Python 3.13
    hashable[:] = [value if type(each) is type(before) and each == before else each for each in hashable]
