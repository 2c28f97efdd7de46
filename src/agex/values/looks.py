"""A look at live variables that tells which of them may have changed.

Trees that encode to what they did are unchanged, which is seen without a walk through their objects (see
`agex.values.base.trees`). All others are encoded, and divided into groups of those that share objects. So
that none which shares with a tree is overlooked, the containers of the trees must be apart from each other
and from those of all others; else every variable is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

from agex.values.base.fingerprint import Fingerprint, part_of
from agex.values.base.group import Group
from agex.values.base.shared_objects import NotApart
from agex.values.base.trees import Tree, stream_of, tree, trees

__all__ = ["Look", "look"]

Encode: TypeAlias = Callable[[Mapping[str, Any], AbstractSet[int]], list[Group]]


@dataclass(frozen=True, kw_only=True)
class Look:
    """Variables as they were found."""

    groups: list[Group]
    """Those that may have changed."""
    unchanged: AbstractSet[str]
    """All others."""
    alone: AbstractSet[str]
    """Those of both that nobody but their holder refers to, in any part: they cannot change before it gives
    them out."""


def look(variables: Mapping[str, Any], known: Mapping[str, Fingerprint | None], encode: Encode) -> Look:
    """Look at the variables that *known* names.

    Args:
        variables: their holder: where nothing else refers to them, they are alone.
        known: the fingerprint that each had by itself; None for one that is to be encoded in any case.
        encode: of variables, and ids of objects that are to be apart from theirs, see `encode`.
    """
    found = trees(variables, known)
    unchanged = {name for name in found if _is_same(variables[name], known[name])}
    ids = [each for name in unchanged for each in found[name].ids]
    rest = {name: variables[name] for name in known if name not in unchanged}
    groups = _encoded_apart(rest, ids, encode)
    del rest
    if groups is None:
        unchanged = set()
        groups = encode({name: variables[name] for name in known}, frozenset())
    single = [group.names[0] for group in groups if len(group.names) == 1]
    alone = {name for name in (*unchanged, *single) if _is_still_alone(variables, name, found.get(name))}
    return Look(groups=groups, unchanged=unchanged, alone=alone)


def _encoded_apart(rest: Mapping[str, Any], ids: list[int], encode: Encode) -> list[Group] | None:
    """Return the groups of variables; None where they are not apart from these ids."""
    apart = set(ids)
    if len(apart) < len(ids):
        return None
    try:
        return encode(rest, apart)
    except NotApart:
        return None


def _is_same(value: Any, before: Fingerprint | None) -> bool:
    """Return whether a tree encodes to what it did."""
    if before is None:
        return False
    try:
        return part_of(memoryview(stream_of((value,)))) == before.parts[0]
    except RecursionError:
        return False


def _is_still_alone(variables: Mapping[str, Any], name: str, before: Tree | None) -> bool:
    """Return whether a tree was alone before it was encoded, and is now, with the same containers.

    So nobody had a hold of it in between, in another thread for instance, and changed what was encoded.
    """
    return before is not None and before.is_alone and tree(variables, name) == before
