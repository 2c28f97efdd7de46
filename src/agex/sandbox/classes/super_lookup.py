"""The class that answers a name for a ``super`` object or a guest object, found without a call of either."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.sandbox.runtime import provenance

__all__ = ["TABLES", "is_inherited", "super_answers", "super_self", "super_shares"]

super_self: Callable[[Any], Any] = super.__dict__["__self__"].__get__
"""Return the object that a ``super`` object speaks for."""
_SUPER_CLASS: Callable[[Any], type | None] = super.__dict__["__self_class__"].__get__
_SUPER_PART: Callable[[Any], type] = super.__dict__["__thisclass__"].__get__


def super_answers(receiver: Any, name: str) -> type:
    """Return the class whose member a ``super`` object finds under *name*; ``object`` if none has it."""
    owner = _SUPER_CLASS(receiver)
    parts = () if owner is None else mro_of(owner)
    behind = itertools.dropwhile(lambda part: part is not _SUPER_PART(receiver), parts)
    return next((part for part in itertools.islice(behind, 1, None) if name in namespace_of(part)), object)


def is_inherited(is_own: Callable[[type], bool], receiver: Any, name: str) -> bool:
    """Return whether a guest object inherits *name* from a host class."""
    parts = mro_of(type(receiver))
    return any(name in namespace_of(part) and not is_own(part) for part in parts)


def super_shares(receiver: Any, name: str) -> bool:
    """Return whether a ``super`` object finds a table of a host class under *name*."""
    found = super_answers(receiver, name)
    is_table = type(namespace_of(found).get(name)) in TABLES
    return is_table and not provenance.is_guest_class(found)


TABLES = frozenset({dict, list, set})
"""Types of tables that a class shares with all users."""
