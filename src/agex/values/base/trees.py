"""Trees: plain data in which each container is in one place, over constants.

Most variables are trees, and two things about one are seen in C, without a visitor for each object. What it
encodes to, which shows whether it changed: the pickler calls no code for these types. And by the counts of
references whether its containers are in nobody else's hands, so that it cannot change before somebody asks
for it: neither an alias, nor a closure, a frame, an iterator or a view of it is anywhere.

Traps: a tuple is a container, for it may lead to one; a set may be weakly referenced, which no count shows;
a count means nothing where the interpreter runs threads without a lock.
"""

from __future__ import annotations

import datetime as dt
import decimal
import gc
import pickle
import sys
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Tree", "forest", "stream_of", "tree", "trees"]

_ATOMS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, dt.date, dt.timedelta, decimal.Decimal}
)
_FROZEN = frozenset({tuple, frozenset})
_WEAK = frozenset({set, frozenset})
_CONTAINERS = frozenset({dict, list, set, bytearray, *_FROZEN})


class Tree(NamedTuple):
    """The containers of a variable that is a tree, and whether they are in nobody's hands."""

    ids: tuple[int, ...]
    """Their ids, that of the variable's own first; tuples of constants are none."""
    is_alone: bool
    """Whether nothing refers to any of them but its place in the tree, and to the first but its holders."""


def trees(variables: Mapping[str, Any], names: Iterable[str]) -> dict[str, Tree]:
    """Return those of some variables that are trees; several may have containers in common."""
    found = ((name, tree(variables, name)) for name in names)
    return {name: each for name, each in found if each is not None}


def tree(variables: Mapping[str, Any], name: str) -> Tree | None:
    """Return the containers of a variable; None where it is a constant, or no tree.

    Args:
        variables: the only one to refer to it, where it is alone. No other place may, not even a local name.
        name: of the variable.
    """
    found = [variables[name]]
    kinds = _grown(found)
    if kinds is None:
        return None
    return Tree(tuple(map(id, found)), _COUNTS and _are_alone(found, kinds))


def forest(variables: Mapping[str, Any], names: Sequence[str]) -> tuple[set[int], set[str]] | None:
    """Look at many variables at once: a tenth of the time of as many single looks.

    Returns:
        The ids of all containers, and the names of the variables that may be alone; None where one of them
        is no tree, or two have a container in common.
    """
    found = [variables[name] for name in names]
    if _grown(found) is None:
        return None
    counts = map(sys.getrefcount, found)
    return set(map(id, found)), {
        name for name, count in zip(names, counts, strict=False) if count == _HELD_ONCE
    }


def _grown(found: list[Any]) -> set[type] | None:
    """Add to some containers those that are in them; return the types of all, None where one is met twice."""
    level = found
    seen: set[int] = set()
    kinds: set[type] = set()
    while level:
        kinds.update(map(type, level))
        here = set(map(id, level))
        if not kinds <= _CONTAINERS or len(here) != len(level) or not seen.isdisjoint(here):
            return None
        seen |= here
        level = [each for each in gc.get_referents(*level) if type(each) not in _ATOMS]
        if not _FROZEN.isdisjoint(map(type, level)):
            level = [each for each in level if type(each) not in _FROZEN or not _is_flat(each)]
        found += level
    return kinds


def _is_flat(value: Iterable[Any]) -> bool:
    """Return whether a tuple or frozen set holds constants only, so that everything may share it."""
    return _ATOMS.issuperset(map(type, value))


def _are_alone(found: list[Any], kinds: set[type]) -> bool:
    if kinds & _WEAK and _has_weak_references(found):
        return False
    # One loop in C, in which no other thread runs: all counts are of the same moment.
    return {_HELD_ONCE}.issuperset(map(sys.getrefcount, found))


def _has_weak_references(found: list[Any]) -> bool:
    return any(type(each) in _WEAK and weakref.getweakrefcount(each) for each in found)


_COUNTS = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether the counts of references are exact."""
_HELD_ONCE: int = next(map(sys.getrefcount, [[]])) + 1
"""The count of an object that is in one place and in a list, as a loop in C over that list sees it."""


def stream_of(values: tuple[Any, ...]) -> bytes:
    """Return the stream of a group whose values hold nothing but plain data.

    Raises:
        RecursionError: it is nested too deeply.
    """
    return pickle.dumps((values, ()), 5)
