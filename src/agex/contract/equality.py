"""Equality of answers: got against expected."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

from agex.contract.plain_values import SCALARS, bare
from agex.contract.real_types import is_subclass, numpy_number, real_items, real_iter, real_len

__all__ = ["same_value"]

_SCALARS: tuple[type, ...] = (bool, int, float, complex, str, bytes, bytearray, type(None))


def same_value(a: object, b: object) -> bool:
    """Return whether *a* (got) and *b* (expected) are the same answer.

    Plain data is compared exactly, with NaN equal to NaN and a bool never equal to a number;
    arrays and tables by their own rule. Anything else must have the type of *b*, and *b*
    decides. A guest subclass of ``str`` or the like is compared as its base: Python would ask the
    subclass first whether it equals *b*.
    """
    return _same(bare(a), b, frozenset())


def _same(a: Any, b: Any, above: frozenset[tuple[int, int]]) -> bool:
    if (id(a), id(b)) in above:
        return True
    above = above | {(id(a), id(b))}
    number = numpy_number(a)
    if number is not None and numpy_number(b) is None:
        a = number
    if _is_plain(a, b, _SCALARS):
        return _same_scalar(a, b)
    for base in (list, tuple):
        if _is_plain(a, b, (base,)):
            pairs = zip(real_iter(a), real_iter(b), strict=False)
            return real_len(a) == real_len(b) and all(_same(x, y, above) for x, y in pairs)
    if _is_plain(a, b, (dict,)):
        return _same_dict(a, b, above)
    if _is_plain(a, b, (set, frozenset)):
        return _same_set(a, b)
    told = _library_same(a, b)
    return (type(a) is type(b) and (a is b or bool(b == a))) if told is None else told


def _is_plain(a: object, b: object, bases: tuple[type, ...]) -> bool:
    """Return whether both derive from *bases*; a named tuple or the like keeps its own rule."""
    if type(a) not in bases and type(b) not in bases:
        return False
    return all(any(is_subclass(type(each), base) for base in bases) for each in (a, b))


def _same_scalar(a: Any, b: Any) -> bool:
    a = _bare(a)
    if is_subclass(type(a), bool) != is_subclass(type(b), bool):
        return False
    return bool(b == a) or (_is_nan(a) and _is_nan(b))


def _bare(value: Any) -> Any:
    """Return a scalar, or a tuple or frozenset of them, without what its class may override."""
    if numpy_number(value) is not None:
        return numpy_number(value)
    for base, read in SCALARS.items():
        if is_subclass(type(value), base):
            return read(value)
    for collection in (tuple, frozenset):
        if is_subclass(type(value), collection):
            return collection(map(_bare, real_iter(value)))
    return value


def _bare_keys(got: Iterable[Any], expected: Iterable[Any]) -> list[Any] | None:
    """Return keys that can be looked up among *expected*; None where a class in *got* is not in *expected*.

    Such a class would be asked for its hash, and then whether it equals what is expected.
    """
    keys = [_bare(each) for each in got]
    return keys if _kinds(keys) <= _kinds(map(_bare, expected)) | set(_SCALARS) else None


def _kinds(values: Iterable[Any]) -> set[type]:
    found: set[type] = set()
    for each in values:
        found |= _kinds(each) if type(each) in (tuple, frozenset) else {type(each)}
    return found


def _same_set(a: Any, b: Any) -> bool:
    keys = _bare_keys(real_iter(a), real_iter(b))
    return keys is not None and frozenset(keys) == frozenset(map(_bare, real_iter(b)))


def _is_nan(value: Any) -> bool:
    return is_subclass(type(value), float) and math.isnan(value)


def _same_dict(a: dict[Any, Any], b: dict[Any, Any], above: frozenset[tuple[int, int]]) -> bool:
    if real_len(a) != real_len(b):
        return False
    items = real_items(a)
    keys = _bare_keys((key for key, _ in items), (key for key, _ in real_items(b)))
    if keys is None:
        return False
    found = dict(zip(keys, (value for _, value in items), strict=True))
    return len(found) == len(items) and all(
        _bare(key) in found and _same(found[_bare(key)], value, above) for key, value in real_items(b)
    )


def _library_same(a: Any, b: Any) -> bool | None:
    """Compare two arrays or two tables; None when they are neither."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and is_subclass(type(b), numpy.ndarray):
        if not is_subclass(type(a), numpy.ndarray):
            return False
        exact = b.dtype.kind in "fc" and a.dtype.kind in "fc"
        return bool(numpy.array_equal(a, b, equal_nan=exact)) and _same_objects(a, b)
    pandas: Any = sys.modules.get("pandas")
    for kind in (pandas.DataFrame, pandas.Series, pandas.Index) if pandas is not None else ():
        if is_subclass(type(b), kind):
            if not is_subclass(type(a), kind):
                return False
            return bool(b.equals(a)) and _same_objects(kind.to_numpy(a), kind.to_numpy(b))
    return None


def _same_objects(a: Any, b: Any) -> bool:
    """Compare the objects in two arrays, which their library asks whether they are equal."""
    return a.dtype != object or _same(a.tolist(), b.tolist(), frozenset())
