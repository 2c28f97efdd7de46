"""Values reduced to their host classes, without the code of guest subclasses.

A guest subclass of ``int`` may have the repr ``4`` and be greater than anything. Host code therefore
prints and compares the value of the base class. A host class keeps its own methods.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import FunctionType, MemberDescriptorType
from typing import Any

from pydantic import BaseModel

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.contract.real_types import (
    class_attribute,
    is_subclass,
    own_attributes,
    real_attribute,
    real_items,
    real_iter,
)
from agex.sandbox.runtime import provenance as origins

__all__ = ["SCALARS", "bare", "bare_scalar", "copied_as", "holds_guest_made", "is_guest_made", "shown_as"]

SCALARS: dict[type, Callable[[Any], Any]] = {
    bool: bool.__bool__,
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: bytes.__bytes__,
    bytearray: lambda value: bytearray.__getitem__(value, slice(None)),
}
"""Builtin classes of plain data, and what reads one past a class derived from it."""


def _of(kind: Any, *names: str) -> Callable[[Any], Any]:
    """Make what builds a *kind* from these attributes of it, read past any override."""
    read = [namespace_of(kind)[name].__get__ for name in names]
    return lambda value: kind(*(each(value) for each in read))


def _moment(value: Any) -> dt.datetime:
    made: dt.datetime = dt.datetime.combine(_DAY(value), _time(value, dt.datetime))
    return made


def _time(value: Any, kind: Any = dt.time) -> dt.time:
    names = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
    hour, minute, second, microsecond, zone, fold = (namespace_of(kind)[n].__get__(value) for n in names)
    return dt.time(hour, minute, second, microsecond, zone, fold=fold)


def _fraction(value: Any) -> Fraction:
    above, below = (bare_scalar(real_attribute(value, name)) for name in ("_numerator", "_denominator"))
    return Fraction(above, below)


_DAY = _of(dt.date, "year", "month", "day")
_LIBRARY: dict[type, Callable[[Any], Any]] = {
    Decimal: Decimal,  # of a Decimal it takes the digits and asks nothing
    Fraction: _fraction,
    dt.datetime: _moment,  # before date, which it derives from
    dt.date: _DAY,
    dt.time: _time,
    dt.timedelta: _of(dt.timedelta, "days", "seconds", "microseconds"),
}


def is_guest_made(kind: type) -> bool:
    """Return whether a class or one of its bases was defined by guest code."""
    return any(map(origins.is_guest_class, mro_of(kind)))


def bare_scalar(value: Any) -> Any:
    """Return a number, text or date of a guest subclass as the value of its host class."""
    kind = type(value)
    if not is_guest_made(kind):
        return value
    for base, read in SCALARS.items():
        if is_subclass(kind, base):
            home = _home(kind, base)
            return read(value) if home is base else _made(home, base, read(value), value)
    for base, build in _LIBRARY.items():
        if is_subclass(kind, base):
            return build(value)
    numpy: Any = sys.modules.get("numpy")
    return numpy.generic.item(value) if numpy is not None and is_subclass(kind, numpy.generic) else value


def _home(kind: type, base: type) -> type:
    """Return the nearest host class that derives from *base*; *base* for an enumeration."""
    home = next(each for each in mro_of(kind) if is_subclass(each, base) and not is_guest_made(each))
    return base if is_subclass(home, Enum) else home


def _made(home: Any, base: Any, content: Any, value: Any) -> Any:
    """Make an instance of a host class past its constructor; return the content where that fails."""
    try:
        made = base.__new__(home, content)
    except TypeError:  # of numpy's, which has a way of its own to make one
        return content
    return _take_attributes(made, home, value)


def bare(value: Any) -> Any:
    """Return *value* with guest subclasses replaced by their bases, at full depth.

    Replaced are scalars and containers of guest subclasses, in builtin containers and in host dataclasses
    and models. A value that contains none comes back as the same object.
    """
    return value if type(value) in SCALARS else _Bare().of(value)


def shown_as(value: Any) -> Any:
    """Return *value* as it is to be shown and compared.

    As :func:`bare`; a guest subclass of a host dataclass or model becomes the host class, whose repr tells
    the fields.
    """
    return _Bare(lowered=True).of(value)


class _Bare:
    """One walk over a value: each object is visited once, so that cycles end."""

    def __init__(self, *, lowered: bool = False) -> None:
        self._lowered = lowered
        self._known: dict[int, tuple[Any, Any]] = {}

    def of(self, value: Any) -> Any:
        if type(value) in SCALARS or value is None:
            return value
        if id(value) not in self._known:
            # The value is held, so that its id is not given to another one.
            self._known[id(value)] = (value, value)
            self._known[id(value)] = (value, self._made(value))
        return self._known[id(value)][1]

    def _made(self, value: Any) -> Any:
        scalar = bare_scalar(value)
        if scalar is not value:
            return scalar
        kind = type(value)
        if is_subclass(kind, dict):
            return self._mapping(value)
        for base in (tuple, list, deque, set, frozenset):
            if is_subclass(kind, base):
                return self._collection(value, base)
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None and is_subclass(kind, numpy.ndarray) and is_guest_made(kind):
            return numpy.ndarray.view(value, numpy.ndarray)
        home = _record_of(kind)
        return value if home is None else self._record(value, home)

    def _all(self, values: Iterable[Any]) -> list[Any]:
        return [self.of(each) for each in values]

    def _mapping(self, value: Any) -> Any:
        old = [part for pair in real_items(value) for part in pair]
        new = self._all(old)
        if _same(old, new) and not is_guest_made(type(value)):
            return value
        items = list(zip(new[::2], new[1::2], strict=True))
        return _kept_apart(value, lambda: _filled(value, items), len(items))

    def _collection(self, value: Any, base: Any) -> Any:
        old = list(real_iter(value))
        new = self._all(old)
        kind = _kind_shown(value, base)
        if kind is type(value) and _same(old, new):
            return value
        if base is deque:
            return deque(new, namespace_of(deque)["maxlen"].__get__(value))
        if base is tuple:
            return tuple.__new__(kind, new)
        return _kept_apart(value, lambda: base(new), len(new))

    def _record(self, value: Any, home: type) -> Any:
        """Look into the attributes of a dataclass or a model."""
        kind = type(value)
        if kind is not home and not self._lowered:
            return value
        try:
            made = copied_as(home, value)
        except TypeError:  # its instances are not made of attributes alone
            return value
        changed = kind is not home
        for name, old in own_attributes(made).items():
            new = self.of(old)
            if new is not old:
                object.__getattribute__(made, "__dict__")[name] = new
                changed = True
        for member, old in _slots(home, made):
            new = self.of(old)
            if new is not old:
                member.__set__(made, new)
                changed = True
        return made if changed else value


def _same(old: list[Any], new: list[Any]) -> bool:
    return all(a is b for a, b in zip(old, new, strict=True))


def _kind_shown(value: Any, base: type) -> type:
    """Return the class to show a collection as: a named tuple keeps its own unless its repr is guest code."""
    kind = type(value)
    if not is_guest_made(kind):
        return kind
    is_named = base is tuple and class_attribute(kind, "_fields") is not None
    if is_named and not _is_guests(class_attribute(kind, "__repr__")):
        return kind
    return _home(kind, base)


def _is_guests(attribute: Any) -> bool:
    return type(attribute) is not FunctionType or origins.session_of(attribute) is not None


def _kept_apart(value: Any, build: Callable[[], Collection[Any]], count: int) -> Any:
    """Build a set or a mapping; the value as it is, where its keys are then the same or cannot be hashed."""
    try:
        made = build()
    except TypeError:
        return value
    return made if len(made) == count else value


def _filled(value: Any, items: list[tuple[Any, Any]]) -> dict[Any, Any]:
    kind = type(value)
    if is_subclass(kind, defaultdict):
        return defaultdict(namespace_of(defaultdict)["default_factory"].__get__(value), items)
    if is_subclass(kind, Counter):
        return Counter(dict(items))
    return OrderedDict(items) if is_subclass(kind, OrderedDict) else dict(items)


def _record_of(kind: type) -> type | None:
    """Return the nearest host class, where that is a dataclass or a model."""
    home = next((each for each in mro_of(kind) if not is_guest_made(each)), object)
    is_record = dataclasses.is_dataclass(home) or is_subclass(home, BaseModel)
    return home if is_record else None


def copied_as(cls: Any, value: Any) -> Any:
    """Return a copy of *value* as an instance of *cls*, which it is or derives from; nothing of it is run.

    Raises:
        TypeError: the class holds its contents in another way than as attributes.
    """
    return _take_attributes(object.__new__(cls), cls, value)


def _take_attributes(made: Any, cls: type, value: Any) -> Any:
    """Copy the attributes of *value* to an instance of *cls*."""
    for member, held in _slots(cls, value):
        member.__set__(made, held)
    for name, held in own_attributes(value).items() if class_attribute(cls, "__dict__") else ():
        object.__getattribute__(made, "__dict__")[name] = held
    return made


def _slots(cls: type, value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the slots of a class that are set in *value*, with their contents."""
    for each in mro_of(cls):
        for member in namespace_of(each).values():
            if type(member) is MemberDescriptorType:
                try:
                    held = member.__get__(value)
                except AttributeError:
                    continue
                yield member, held


def holds_guest_made(value: Any) -> bool:
    """Return whether a value, or one in its builtin containers, is of a guest class."""
    found: dict[int, Any] = {}
    rest = [value]
    while rest:
        each = rest.pop()
        if type(each) in SCALARS or id(each) in found:
            continue
        if is_guest_made(type(each)):
            return True
        found[id(each)] = each
        if is_subclass(type(each), dict):
            rest += (part for pair in real_items(each) for part in pair)
        elif any(is_subclass(type(each), base) for base in (list, tuple, set, frozenset, deque)):
            rest += real_iter(each)
    return False
