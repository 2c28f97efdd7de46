"""``array.array`` that converts a number before it looks up the place to write to.

The real one looks up the place, asks the object for its number, and then writes. A guest ``__index__`` may
free the memory in between, and the write goes to whatever lies there now. Here the number comes first. A
slice of such an array and the sum of two are such arrays, too.
"""

from __future__ import annotations

import array as real
import math
import operator
from collections.abc import Iterable
from typing import Any

__all__ = ["Between", "TypedArray"]

_array: Any = real.array


def _settled(array: Any, value: Any) -> Any:
    """Return the number that an object stands for; an array or a text unchanged."""
    if type(value) in _PLAIN or issubclass(type(value), (_array, str)):
        return value
    if array.typecode in "fd":
        return math.ldexp(value, 0)  # which takes no text, as float() does
    return operator.index(value)


def _each_settled(array: Any, values: Iterable[Any]) -> Iterable[Any]:
    return (value if type(value) in _PLAIN else _settled(array, value) for value in values)


def _of(array: Any) -> Any:
    """Return a real array as one of these."""
    return TypedArray(array.typecode, array)


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _array)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _array)


class Between(_array, metaclass=_Meta):  # type: ignore[misc]
    """The class that ``super()`` finds: behind it is the real one."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        found = _array.__getitem__(self, index)
        return _of(found) if type(found) is _array else found

    def __setitem__(self, index: Any, value: Any) -> None:
        _array.__setitem__(self, index, value if type(value) in _PLAIN else _settled(self, value))

    def append(self, v: Any, /) -> None:
        _array.append(self, _settled(self, v))

    def insert(self, i: Any, v: Any, /) -> None:
        _array.insert(self, i, _settled(self, v))

    def extend(self, bb: Any, /) -> None:
        _array.extend(self, bb if issubclass(type(bb), _array) else _each_settled(self, bb))

    def fromlist(self, values: Any, /) -> None:
        _array.fromlist(self, [*_each_settled(self, values)] if type(values) is list else values)

    def __add__(self, other: Any) -> Any:
        return _of(_array.__add__(self, other))

    def __mul__(self, times: Any) -> Any:
        return _of(_array.__mul__(self, times))

    __rmul__ = __mul__

    def __copy__(self) -> Any:
        return _of(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return _of(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _array(self.typecode, self).__reduce_ex__(protocol)  # who loads it may know of no sandbox


class TypedArray(Between):
    """An array whose numbers are made before their places are found."""

    __slots__ = ()


_PLAIN = frozenset({bool, int, float, str, _array, TypedArray})

for _shown in (Between, TypedArray):
    _shown.__name__ = _shown.__qualname__ = "array"
    _shown.__module__ = "array"
    _shown.__doc__ = _array.__doc__
