"""Which class answers a name, for a ``super`` object or one of a guest's, without asking either."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.sandbox.runtime import provenance as origins

__all__ = ["TABLES", "is_inherited", "super_answers", "super_self", "super_shares"]

super_self: Callable[[Any], Any] = super.__dict__["__self__"].__get__
"""Gives the object that a ``super`` object speaks for."""
_SUPER_CLASS: Callable[[Any], type | None] = super.__dict__["__self_class__"].__get__
_SUPER_PART: Callable[[Any], type] = super.__dict__["__thisclass__"].__get__


def super_answers(receiver: Any, name: str) -> type:
    """Give the class whose member a ``super`` object gives under *name*; ``object`` where none has it."""
    owner = _SUPER_CLASS(receiver)
    parts = () if owner is None else mro_of(owner)
    behind = itertools.dropwhile(lambda part: part is not _SUPER_PART(receiver), parts)
    return next((part for part in itertools.islice(behind, 1, None) if name in namespace_of(part)), object)


def is_inherited(is_own: Callable[[type], bool], receiver: Any, name: str) -> bool:
    """Tell whether an object of the guest's has *name* from a class that is not the guest's."""
    parts = mro_of(type(receiver))
    return any(name in namespace_of(part) and not is_own(part) for part in parts)


def super_shares(receiver: Any, name: str) -> bool:
    """Tell whether what a ``super`` object gives under *name* is a table that a class of the host's holds."""
    found = super_answers(receiver, name)
    is_table = type(namespace_of(found).get(name)) in TABLES
    return is_table and not origins.is_guest_class(found)


TABLES = frozenset({dict, list, set})
"""The kinds of tables."""
