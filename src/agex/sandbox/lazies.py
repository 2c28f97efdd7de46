"""Iterators over iterators, only so deep: CPython follows them on the C stack, without a check.

``it = filter(None, it)`` half a million times is a row of harmless calls, and ``next(it)``
then ends the process. What guests get as ``map``, ``zip``, ``itertools.chain`` and so on are
subclasses whose instances know how many such iterators lie below them.
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
        made = type.__call__(cls, *args, **kwargs)
        for arg in args:
            if type(arg) in _LAZY:
                return _placed(made, args)
        return made


def _placed(made: Any, below: Any) -> Any:
    """Note how deep an iterator goes that was made over *below*.

    Raises:
        RecursionError: too deep.
    """
    depth = 1 + max((_depth(each) for each in below if type(each) in _LAZY), default=0)
    if depth > DEEPEST:
        raise RecursionError(f"iterators nested more than {DEEPEST} deep; make a list in between")
    if type(type(made)) is LazyMeta:  # reversed([]) is something else
        made._depth = depth
    return made


def _depth(iterator: Any) -> int:
    """Tell how many iterators lie one below the other in *iterator*, itself included."""
    if type(type(iterator)) is LazyMeta:
        return getattr(iterator, "_depth", 1)
    held = gc.get_referents(iterator)  # what tee and groupby give, and what the host made
    held += gc.get_referents(*(each for each in held if type(each) in _PARTS))
    return 1 + max((_depth(each) for each in held if type(each) in _LAZY), default=0)


def _from_iterable(iterable: Any, /) -> Any:
    """Do what ``itertools.chain.from_iterable`` does."""
    return _placed(_from_any(iterable), iterable if isinstance(iterable, (list, tuple)) else (iterable,))


def _tee(iterable: Any, n: int = 2, /) -> Any:
    """Do what ``itertools.tee`` does."""
    if type(iterable) in _LAZY:
        _placed(None, (iterable,))
    return itertools.tee(iterable, n)


def _guarded(real: type) -> type:
    namespace = {"__slots__": ("_depth",), "__doc__": real.__doc__, "__module__": real.__module__}
    return LazyMeta(real.__name__, (real,), namespace)


_REAL = [
    value
    for name, value in vars(itertools).items()
    if isinstance(value, type) and not name.startswith("_") and name not in {"count", "repeat"}
]
_INNER: tuple[type, ...] = (type(itertools.tee(())[0]), type(next(iter(itertools.groupby("a")))[1]))
_PARTS = frozenset({tuple, getattr(itertools, "_tee_dataobject", tuple)})

BUILTINS: dict[str, Any] = {each.__name__: _guarded(each) for each in (enumerate, filter, map, reversed, zip)}
"""The builtins that are guarded."""
ITERTOOLS: dict[str, Any] = {each.__name__: _guarded(each) for each in _REAL} | {"tee": _tee}
"""The members of itertools that are guarded."""

_from_any = ITERTOOLS["chain"].from_iterable
ITERTOOLS["chain"].from_iterable = staticmethod(_from_iterable)

_TYPES = [each for each in (*BUILTINS.values(), *ITERTOOLS.values()) if isinstance(each, type)]
_LAZY = frozenset({*_TYPES, *_REAL, *_INNER})
