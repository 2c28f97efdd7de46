"""Iterators over iterators with a limited depth, because CPython follows them on the C stack unchecked.

``it = filter(None, it)`` half a million times is a series of harmless calls, and then ``next(it)`` ends the
process. The guest's ``map``, ``zip``, ``itertools.chain`` and so on are subclasses whose instances count the
iterators below them. They count in ``__new__``, so that every way of making one is covered.

Some C iterators drop the iterator below at its end, even while they ask it for an item. A guest iterator may
re-enter the one that is asking it. So the iterators below are held for as long as the outer one lives, and
one that is not plain is wrapped in a generator, which raises on re-entry. `alone` does the same for other
modules.
"""

from __future__ import annotations

import gc
import itertools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

from agex.sandbox.classes import stand_ins
from agex.sandbox.classes.stand_ins import REAL_OF, LazyMeta

__all__ = ["BUILTINS", "DEEPEST", "ITERTOOLS", "alone"]

DEEPEST = 1_000
"""The greatest depth. A level takes some hundred bytes of C stack; CPython's own recursion goes as far."""


_PLAIN = frozenset({bool, bytes, dict, frozenset, int, list, range, set, str, tuple})
"""The classes of objects that are iterated over without running any code."""


def _each_of(iterator: Any) -> Iterator[Any]:
    """Yield the items of an iterator."""
    for each in iterator:  # noqa: UP028 - `yield from` would close it as well
        yield each


def alone(iterable: Any) -> Any:
    """Return an iterator over *iterable* that raises if it is re-entered; a plain object as it is."""
    return iterable if type(iterable) in _PLAIN else _each_of(iter(iterable))


def _placed(made: Any, below: Any) -> Any:
    """Store the depth of an iterator that was made over *below*.

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
    """Return the number of nested iterators in *iterator*, itself included."""
    if type(type(iterator)) is LazyMeta:
        return getattr(iterator, "_depth", 1)
    held = gc.get_referents(iterator)  # results of tee and groupby, and iterators of the host
    held += gc.get_referents(*(each for each in held if type(each) in _PARTS))
    return 1 + max((_depth(each) for each in held if type(each) in _LAZY), default=0)


def _from_iterable(iterable: Any, /) -> Any:
    """Do what ``itertools.chain.from_iterable`` does."""
    iterator = iter(iterable)  # at once, as the real one: a generator would call iter() at its first item
    if type(iterable) is list or type(iterable) is tuple:  # `in` with a set would hash by a guest metaclass
        return _placed(_from_any(_followed(iterator)), iterable)
    return _placed(_from_any(_followed(iterator)), (iterator,))


def _followed(iterator: Any) -> Any:
    """Yield the items of an iterator. Python code follows nested iterators among them, and counts.

    It does not end while it is being asked for an item; the chain would drop the iterator then.
    """
    for each in iterator:
        yield _counted(each) if type(each) in _LAZY else alone(each)


def _counted(iterator: Any) -> Any:
    yield from iterator


def _tee(*args: Any, **kwargs: Any) -> Any:
    """Do what ``itertools.tee`` does."""
    if args and type(args[0]) in _LAZY:
        _placed(None, args[:1])
    return itertools.tee(*args, **kwargs)  # raises the real error


def _first(iterable: Any = (), *rest: Any) -> tuple[Any, ...]:
    return (iterable if type(iterable) in _PLAIN else iter(iterable), *rest)


def _all(*iterables: Any) -> tuple[Any, ...]:
    return iterables


def _each_alone(*iterables: Any) -> tuple[Any, ...]:
    """Return iterators that raise if they are re-entered, as generators do."""
    return tuple(map(alone, iterables))


_ITERATORS: dict[str, Callable[..., tuple[Any, ...]]] = {
    **dict.fromkeys(("batched", "cycle", "islice", "pairwise"), _first),
    "chain": _all,
    "zip_longest": _each_alone,  # it drops an iterator as often as that ends
}
"""By the name of an iterator that drops those below: makes the arguments that it gets and holds."""


def _holding(make: Any, of: Callable[..., tuple[Any, ...]]) -> Any:
    def make_holding(cls: type, /, *args: Any, **kwargs: Any) -> Any:
        held = of(*args) if args else ()
        if "iterable" in kwargs:
            kwargs["iterable"] = _first(kwargs["iterable"])[0]
        made = make(cls, *held, **kwargs)
        made._held = held, kwargs
        return made

    return make_holding


def _accumulating(make: Any) -> Any:
    """Make ``accumulate`` with a Python function, which holds the total: adding may re-enter the iterator."""

    def in_python(func: Any) -> Any:
        call = operator.add if func is None else func

        def added(total: Any, each: Any) -> Any:
            return call(total, each)

        return call if type(call) is types.FunctionType else added

    def make_accumulating(cls: type, /, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1:
            return make(cls, args[0], in_python(args[1]), *args[2:], **kwargs)
        return make(cls, *args, **{**kwargs, "func": in_python(kwargs.get("func"))})

    return make_accumulating


def _guarded(real: type, **instead_of: Any) -> type:
    of = _ITERATORS.get(real.__name__)
    make: Any = real.__new__ if of is None else _holding(real.__new__, of)
    if real is itertools.accumulate:
        make = _accumulating(make)

    def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is the one of the class below
        made = make(cls, *args, **kwargs)
        for arg in args:
            if type(arg) in _LAZY:
                return _placed(made, args)
        for arg in kwargs.values():
            if type(arg) in _LAZY:
                return _placed(made, (*args, *kwargs.values()))
        return made

    namespace = {
        "__slots__": ("_depth", "_held"),
        "__doc__": real.__doc__,
        "__module__": real.__module__,
        "__new__": __new__,
    }
    # `super()` finds the class in between: the real `chain.from_iterable` would not count.
    between = type(real.__name__, (real,), {"__slots__": (), "__module__": real.__module__, **instead_of})
    made = LazyMeta(real.__name__, (between,), namespace)
    REAL_OF[made] = real
    return stand_ins.stands_for(real, made)


_REAL = [
    value
    for name, value in vars(itertools).items()
    if isinstance(value, type) and not name.startswith("_") and name not in {"count", "repeat"}
]
_CHAIN: type = itertools.chain
_INNER: tuple[type, ...] = (type(itertools.tee(())[0]), type(next(iter(itertools.groupby("a")))[1]))
_PARTS = frozenset({tuple, getattr(itertools, "_tee_dataobject", tuple)})

BUILTINS: dict[str, Any] = {each.__name__: _guarded(each) for each in (enumerate, filter, map, reversed, zip)}
"""The builtins that are guarded."""
_from_iterable.__module__, _from_iterable.__name__ = "itertools", "from_iterable"
_from_iterable.__qualname__ = "chain.from_iterable"
_OF_CHAIN = {"from_iterable": staticmethod(_from_iterable)}
ITERTOOLS: dict[str, Any] = {"tee": _tee} | {
    each.__name__: _guarded(each, **(_OF_CHAIN if each is _CHAIN else {})) for each in _REAL
}
"""The members of itertools that are guarded."""


_from_any = vars(_CHAIN)["from_iterable"].__get__(None, ITERTOOLS["chain"])

_TYPES = [each for each in (*BUILTINS.values(), *ITERTOOLS.values()) if isinstance(each, type)]
_LAZY = frozenset({*_TYPES, *_REAL, *_INNER})
