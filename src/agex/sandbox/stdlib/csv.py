"""Iterators that are not asked again while they are being asked.

C code that asks an iterator for an item trusts that nothing asks it meanwhile. One of the guest's may: what
reads from it, ``csv.reader`` for one, comes to an end in the midst of its work, and goes on with memory that
it has given back. A generator raises where it is asked again, so one of ours stands between.
"""

from __future__ import annotations

import functools
import io
import types
from collections.abc import Callable, Iterator
from typing import Any

from agex.sandbox.runtime.context import CURRENT

__all__ = ["LATE", "PLAIN", "alone", "each_of"]

PLAIN = frozenset({bool, bytes, dict, frozenset, int, list, range, set, str, tuple})
"""The classes of what may be iterated over without harm: that runs no code of anybody's."""


def each_of(iterator: Any) -> Iterator[Any]:
    """Give what an iterator gives."""
    for each in iterator:  # noqa: UP028 - `yield from` would close it as well
        yield each


def alone(iterable: Any) -> Any:
    """Give an iterator over *iterable* that is not asked again while it is asked; a plain one as it is."""
    return iterable if type(iterable) in PLAIN else each_of(iter(iterable))


@functools.cache
def _csv() -> dict[str, Any]:
    import csv

    real: Any = csv.reader

    @functools.wraps(real)
    def reader(*args: Any, **kwargs: Any) -> Any:
        if args and CURRENT.get() is not None and type(args[0]) not in _OF_LINES:
            return real(alone(args[0]), *args[1:], **kwargs)
        return real(*args, **kwargs)

    csv.reader = reader  # which DictReader calls
    return {"reader": reader}


_OF_LINES = frozenset({io.StringIO, io.TextIOWrapper, types.GeneratorType})

LATE: dict[str, Callable[[], dict[str, Any]]] = {"csv": _csv}
"""Makes what stands in, when the module is first asked for."""
