"""Iterators over iterators, only so deep: CPython follows them on the C stack, without a check.

``it = filter(None, it)`` half a million times is a row of harmless calls, and ``next(it)``
then ends the process. What guests get as ``map``, ``zip``, ``itertools.chain`` and so on are
subclasses that look, when they are made over another one, how deep it goes.
"""

from __future__ import annotations

import gc
import itertools
from typing import Any

from agex.errors import SandboxTypeError

__all__ = ["BUILTINS", "DEEPEST", "ITERTOOLS", "LazyMeta"]

DEEPEST = 1_000
"""Levels. Each takes some hundred bytes of a C stack of some MiB; CPython's own recursion goes as far."""


class LazyMeta(type):
    """The metaclass of the guarded iterator types."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> LazyMeta:
        if bases and isinstance(bases[0], LazyMeta):
            raise SandboxTypeError(f"{bases[0].__name__} cannot be subclassed here; write a generator")
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        for arg in args:
            if type(arg) in _LAZY:
                _require_shallow(arg)
        return type.__call__(cls, *args, **kwargs)


def _require_shallow(iterator: Any) -> None:
    """Raise RecursionError if *iterator* is over iterators over iterators, and so on."""
    level, depth = {id(iterator): iterator}, 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise RecursionError(f"iterators nested more than {DEEPEST} deep; make a list in between")
        level = {id(inner): inner for each in level.values() for inner in _held(each) if type(inner) in _LAZY}


def _held(iterator: Any) -> list[Any]:
    """Give what an iterator goes over: what it holds itself, or in a tuple of its own."""
    held = gc.get_referents(iterator)
    if isinstance(iterator, itertools.chain):  # an iterator over what to chain
        held += gc.get_referents(*(each for each in held if type(each) in _ITERATORS))
    return held + gc.get_referents(*(each for each in held if type(each) in _SEQUENCES))


def _guarded(real: type) -> type:
    namespace = {"__slots__": (), "__doc__": real.__doc__, "__module__": real.__module__}
    return LazyMeta(real.__name__, (real,), namespace)


def _from_iterable(iterable: Any, /) -> Any:
    """Do what ``itertools.chain.from_iterable`` does."""
    if isinstance(iterable, (list, tuple)) or type(iterable) in _LAZY:
        for each in (iterable,) if type(iterable) in _LAZY else iterable:
            if type(each) in _LAZY:
                _require_shallow(each)
    return itertools.chain.from_iterable(iterable)


def _tee(iterable: Any, n: int = 2, /) -> Any:
    """Do what ``itertools.tee`` does."""
    if type(iterable) in _LAZY:
        _require_shallow(iterable)
    return itertools.tee(iterable, n)


_REAL = [
    value
    for name, value in vars(itertools).items()
    if isinstance(value, type) and not name.startswith("_") and name not in {"count", "repeat"}
]
_ITERATORS = frozenset({type(iter(())), type(iter([]))})
_SEQUENCES = frozenset({tuple, list, getattr(itertools, "_tee_dataobject", tuple)})
_INNER = (type(itertools.tee(())[0]), type(next(iter(itertools.groupby("a")))[1]))

BUILTINS: dict[str, Any] = {each.__name__: _guarded(each) for each in (enumerate, filter, map, reversed, zip)}
"""The builtins that are guarded."""
ITERTOOLS: dict[str, Any] = {each.__name__: _guarded(each) for each in _REAL} | {"tee": _tee}
"""The members of itertools that are guarded."""
ITERTOOLS["chain"].from_iterable = staticmethod(_from_iterable)

_LAZY = frozenset(
    {*BUILTINS.values(), *(v for v in ITERTOOLS.values() if isinstance(v, type)), *_INNER, *_REAL}
)
