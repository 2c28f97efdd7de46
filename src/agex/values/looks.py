"""Looks at live variables that tell which of them may have changed.

Trees that encode to what they did are unchanged, which is seen without a walk through each object (see
`agex.values.base.trees`). All others are encoded, and divided into groups of those that share objects. So
that none which shares with a tree is overlooked, the containers of the trees must be apart from each other
and from those of all others; else every variable is encoded.

Trees that did not change for a while are looked at in blocks: one stream for many of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from agex.values.base.fingerprint import Fingerprint, digest, part_of
from agex.values.base.group import Group
from agex.values.base.shared_objects import NotApart
from agex.values.base.trees import Tree, forest, stream_of, tree, trees

__all__ = ["Look", "Looks"]

Encode: TypeAlias = Callable[[Mapping[str, Any], AbstractSet[int]], list[Group]]
Known: TypeAlias = Mapping[str, "Fingerprint | None"]

_BLOCK = 64  # variables; a call costs as much as the encoding of several small dicts


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


class _Block(NamedTuple):
    """Trees that were what their fingerprints say when they encoded to a stream of this digest."""

    names: tuple[str, ...]
    known: tuple[Fingerprint | None, ...]
    digest: bytes


class Looks:
    """Looks at the variables of one holder, one after another."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []

    def look(self, variables: Mapping[str, Any], known: Known, encode: Encode) -> Look:
        """Look at the variables that *known* names.

        Args:
            variables: their holder: where nothing else refers to them, they are alone.
            known: the fingerprint that each had by itself; None for one that is to be encoded in any case.
            encode: of variables, and ids of objects that are to be apart from theirs, see `encode`.
        """
        blocks, ids = self._same_blocks(variables, known)
        in_blocks = {name for block in blocks for name in block.names}
        found = trees(variables, known.keys() - in_blocks)
        unchanged = {name for name in found if _is_same(variables[name], known[name])}
        others = [each for name in unchanged for each in found[name].ids]
        rest = {name: variables[name] for name in known if name not in unchanged and name not in in_blocks}
        groups = None
        if len(ids) + len(others) == len(ids.union(others)):
            groups = _encoded_apart(rest, ids.union(others), encode)
        del rest  # it would be one more that refers to them
        if groups is None:
            blocks, in_blocks, unchanged = [], set(), set()
            groups = encode({name: variables[name] for name in known}, frozenset())
        single = [group.names[0] for group in groups if len(group.names) == 1]
        alone = {name for name in (*unchanged, *single) if _is_still_alone(variables, name, found.get(name))}
        self._blocks = [*blocks, *_new_blocks(variables, known, sorted(unchanged - alone))]
        return Look(groups=groups, unchanged=in_blocks | unchanged, alone=alone)

    def _same_blocks(self, variables: Mapping[str, Any], known: Known) -> tuple[list[_Block], set[int]]:
        """Return the blocks of trees that are what they were, and the ids of their containers."""
        if len(self._blocks) > 8 + len(known) // (_BLOCK // 4):  # they fell into small pieces
            return [], set()
        blocks = [
            block
            for block in self._blocks
            if all(map(operator.is_, map(known.get, block.names), block.known))
        ]
        seen = forest(variables, [name for block in blocks for name in block.names])
        if seen is None:
            return [], set()
        # Of plain data only: encoding it calls no code. Those that may be alone are looked at one by one.
        same = [
            block
            for block in blocks
            if seen[1].isdisjoint(block.names) and _joint(variables, block.names) == block.digest
        ]
        kept = {block.names[0] for block in same}
        changed = [name for block in blocks if block.names[0] not in kept for name in block.names]
        gone = forest(variables, changed)
        return (same, seen[0] - gone[0]) if gone is not None else ([], set())


def _new_blocks(variables: Mapping[str, Any], known: Known, names: list[str]) -> Iterable[_Block]:
    for start in range(0, len(names), _BLOCK):
        block = tuple(names[start : start + _BLOCK])
        joint = _joint(variables, block)
        # After that, for another thread may have changed one before.
        if joint is not None and all(_is_same(variables[name], known[name]) for name in block):
            yield _Block(block, tuple([known[name] for name in block]), joint)


def _joint(variables: Mapping[str, Any], names: Iterable[str]) -> bytes | None:
    """Return the digest of the stream of several trees; None where there is none."""
    try:
        return digest(stream_of(tuple([variables[name] for name in names])))
    except RecursionError:
        return None


def _encoded_apart(rest: Mapping[str, Any], apart: set[int], encode: Encode) -> list[Group] | None:
    """Return the groups of variables; None where they are not apart from these ids."""
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
