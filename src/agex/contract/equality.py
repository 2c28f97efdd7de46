"""When two values count as the same answer."""

from __future__ import annotations

import math
import sys
from typing import Any

from agex.contract.realtype import is_subclass, numpy_number, real_items, real_iter, real_len

__all__ = ["same_value"]

_SCALARS: tuple[type, ...] = (bool, int, float, complex, str, bytes, bytearray, type(None))


def same_value(a: object, b: object) -> bool:
    """Tell whether *a* (got) and *b* (expected) are the same answer.

    Plain data is compared exactly, with NaN equal to NaN and a bool never equal to a number;
    arrays and tables by their own rule. Anything else must have the type of *b*, and *b*
    decides.
    """
    return _same(a, b, frozenset())


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
        return frozenset(real_iter(a)) == frozenset(real_iter(b))
    told = _library_same(a, b)
    return (type(a) is type(b) and bool(b == a)) if told is None else told


def _is_plain(a: object, b: object, bases: tuple[type, ...]) -> bool:
    """Tell whether both derive from *bases*; a named tuple or the like keeps its own rule."""
    if type(a) not in bases and type(b) not in bases:
        return False
    return all(any(is_subclass(type(each), base) for base in bases) for each in (a, b))


def _same_scalar(a: Any, b: Any) -> bool:
    if is_subclass(type(a), bool) != is_subclass(type(b), bool):
        return False
    return bool(b == a) or (_is_nan(a) and _is_nan(b))


def _is_nan(value: Any) -> bool:
    return is_subclass(type(value), float) and math.isnan(value)


def _same_dict(a: dict[Any, Any], b: dict[Any, Any], above: frozenset[tuple[int, int]]) -> bool:
    if real_len(a) != real_len(b):
        return False
    found = dict(real_items(a))
    return all(key in found and _same(found[key], value, above) for key, value in real_items(b))


def _library_same(a: Any, b: Any) -> bool | None:
    """Compare two arrays or two tables; None when they are neither."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and is_subclass(type(b), numpy.ndarray):
        if not is_subclass(type(a), numpy.ndarray):
            return False
        exact = b.dtype.kind in "fc" and a.dtype.kind in "fc"
        return bool(numpy.array_equal(a, b, equal_nan=exact))
    pandas: Any = sys.modules.get("pandas")
    for kind in (pandas.DataFrame, pandas.Series, pandas.Index) if pandas is not None else ():
        if is_subclass(type(b), kind):
            return is_subclass(type(a), kind) and bool(b.equals(a))
    return None
