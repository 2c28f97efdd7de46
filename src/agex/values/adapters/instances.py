"""Instances of guest and host classes: taken apart by field, and made without running their code.

An instance consists of the content of its builtin base (a list's items, an exception's arguments), its
``__dict__`` and its slots. No method of its class runs, neither here nor when it is made again: a
``__getstate__``, ``__setstate__``, ``__getnewargs__`` or ``__copy__`` in guest code serves its own copies
only.
"""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import struct
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from agex._interpreter.type_slots import mro_of
from agex.values.adapters import exceptions
from agex.values.adapters.stdlib import make_frozenset
from agex.values.base.decode_budget import put_in, size_of, spend
from agex.values.base.handle import unwrapped

__all__ = [
    "attributes_of",
    "blank",
    "fill",
    "has_only_attributes",
    "has_own_pickling",
    "hashes_itself",
    "take_apart",
]

_DATES = (dt.datetime, dt.date, dt.time, dt.timedelta)

_TAKE: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    bool: lambda value: (bool(value),),
    int: lambda value: (int.__index__(value),),
    float: lambda value: (float.__float__(value),),
    complex: lambda value: (complex.__complex__(value),),
    str: lambda value: (str.__str__(value),),
    bytes: lambda value: (bytes.__bytes__(value),),
    bytearray: lambda value: (bytes(memoryview(value)),),
    tuple: lambda value: (tuple.__getitem__(value, slice(None)),),
    frozenset: lambda value: (list(frozenset.__iter__(value)),),
    decimal.Decimal: lambda value: (decimal.Decimal.__str__(value),),
    collections.deque: lambda value: ((), collections.deque.__dict__["maxlen"].__get__(value)),
    **{cls: lambda value, cls=cls: cls.__reduce_ex__(value, 5)[1] for cls in _DATES},  # type: ignore[misc]
}
"""Arguments with which ``__new__`` of a builtin class makes an equal instance."""

_GIVEN: dict[type, type] = {
    bool: bool, int: int, float: float, complex: complex, str: str, bytes: bytes, bytearray: bytes,
    tuple: tuple, frozenset: list, decimal.Decimal: str, collections.deque: tuple,
}  # fmt: skip
"""Types of those arguments: ``bytes(n)`` makes n zeros, and ``tuple`` all numbers of a range."""


def _put_ordered(value: Any, items: Any) -> None:
    for key, each in items:
        collections.OrderedDict.__setitem__(value, key, each)


_ITEMS: dict[type, Callable[[Any], Any]] = {
    list: list.copy,
    dict: lambda value: list(dict.items(value)),
    collections.OrderedDict: lambda value: list(collections.OrderedDict.items(value)),
    set: lambda value: list(set.__iter__(value)),
    collections.deque: lambda value: list(collections.deque.__iter__(value)),
    collections.defaultdict: lambda value: list(dict.items(value)),
}
"""Items that are put in afterwards, because they may refer back to the instance."""

_PUT: dict[type, Callable[[Any, Any], Any]] = {
    list: list.extend,
    dict: dict.update,
    collections.OrderedDict: _put_ordered,
    set: set.update,
    collections.deque: collections.deque.extend,
    collections.defaultdict: dict.update,
}

_SOLID = frozenset({*_TAKE, *_ITEMS, *exceptions.BUILTIN.values(), object})


def _solid(cls: type) -> type:
    """Return the builtin base of an instance."""
    if issubclass(cls, BaseException):
        return exceptions.builtin_of(cls)
    return next((base for base in mro_of(cls) if base in _SOLID), object)


def _require_open(cls: type, solid: type) -> None:
    """Refuse a class whose instances hold a C structure beside fields: it would be made empty.

    Raises:
        TypeError: they do.
    """
    size = solid.__basicsize__ + _POINTER * sum(1 for _ in _slots(cls))
    if cls.__weakrefoffset__ > 0 >= solid.__weakrefoffset__:
        size += _POINTER
    if solid.__dictoffset__ == 0 and (cls.__dictoffset__ > 0 or (cls.__dictoffset__ and cls.__itemsize__)):
        size += _POINTER  # else it is managed outside the structure
    if cls.__basicsize__ > size:
        raise TypeError(f"a {cls.__name__} holds a structure that only its own library knows")


_POINTER = struct.calcsize("P")


def has_own_pickling(cls: type) -> bool:
    """Return whether a host class says itself how its instances are pickled."""
    own = (
        "__reduce__",
        "__reduce_ex__",
        "__getstate__",
        "__setstate__",
        "__getnewargs__",
        "__getnewargs_ex__",
    )
    for base in mro_of(cls):
        if base in _SOLID or base.__module__ == "enum":
            return False
        if any(name in vars(base) for name in own):
            return not (
                base.__module__ == "typing" or hasattr(cls, "_fields")
            )  # a named tuple's says nothing
    return False


def hashes_itself(cls: type) -> bool:
    """Return whether code in Python runs when an instance is put into a dict or a set."""
    hashes, compares = (
        next((vars(base)[name] for base in mro_of(cls) if name in vars(base)), None)
        for name in ("__hash__", "__eq__")
    )
    in_c = types.WrapperDescriptorType
    return hashes is not None and not (type(hashes) is in_c and type(compares) is in_c)


State = tuple[dict[str, Any] | None, dict[str, Any] | None, Any, Any]


def take_apart(encoder: Any, value: Any) -> tuple[tuple[Any, ...], State]:
    """Return the arguments of `blank` and of `fill` for an instance."""
    cls = type(value)
    solid = _solid(cls)
    _require_open(cls, solid)
    top: Callable[[Any], Any] = encoder.top
    args: tuple[Any, ...]
    items: Any
    if issubclass(solid, BaseException):
        args, items = exceptions.take(value, encoder.captures)
    else:
        args = _TAKE[solid](value) if solid in _TAKE else ()
        items = _ITEMS[solid](value) if solid in _ITEMS else None
    factory = top(_FACTORY.__get__(value)) if solid is collections.defaultdict else None
    attributes = _attributes(value)
    slots = {name: top(slot.__get__(value)) for name, slot in _slots(cls) if _is_set(slot, value)}
    named = {name: top(each) for name, each in attributes.items()} if attributes else None
    return args, (named, slots or None, items, factory)


_FACTORY: Any = collections.defaultdict.__dict__["default_factory"]


def has_only_attributes(cls: type) -> bool:
    """Return whether instances of a class hold nothing outside their ``__dict__``, as most do."""
    try:
        _require_open(cls, object)
    except TypeError:
        return False
    return _solid(cls) is object and next(_slots(cls), None) is None and cls.__dictoffset__ != 0


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the ``__dict__`` of an instance of such a class."""
    found: dict[str, Any] = object.__getattribute__(value, "__dict__")
    return found


def _attributes(value: Any) -> dict[str, Any] | None:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def _slots(cls: type) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for base in mro_of(cls):
        names = vars(base)
        if "__slots__" in names:
            for name, slot in names.items():
                if type(slot) is types.MemberDescriptorType and name not in seen:
                    seen.add(name)
                    yield name, slot


def _is_set(slot: Any, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def blank(cls: type, args: tuple[Any, ...]) -> Any:
    """Make an instance that `fill` has not seen yet.

    Raises:
        TypeError: the class is not one whose instances can be made from fields.
    """
    solid = _solid(cls)
    if issubclass(cls, (type, enum.Enum)):
        raise TypeError(f"instances of {cls.__name__} are not made from fields")
    spend(sum(size_of(each, 0) for each in args))
    if args and type(args[0]) is not _GIVEN.get(solid, type(args[0])):
        raise TypeError(f"a stored {cls.__name__} is made from a {type(args[0]).__name__}")
    if solid is collections.deque:
        made = collections.deque.__new__(cls)
        collections.deque.__init__(made, *args)  # type: ignore[call-overload]
        return made
    if issubclass(solid, BaseException):
        return exceptions.blank(cls, args)
    if solid is frozenset and args:
        return frozenset.__new__(cls, make_frozenset(args[0]))  # type: ignore[type-var]
    return solid.__new__(cls, *args)


_ITEM = 32
"""Bytes of a place for an item or an attribute."""


def fill(value: Any, state: State) -> None:
    """Set the attributes, slots and items of an instance."""
    attributes, slots, items, factory = state
    cls = type(value)
    solid = _solid(cls)
    if issubclass(solid, BaseException):
        exceptions.fill(value, items or {})
    elif items is not None:
        if type(items) is not list or (issubclass(solid, dict) and set(map(type, items)) - {tuple}):
            raise TypeError(f"the items of a stored {cls.__name__} are no list")
        spend(_ITEM * len(items))
        put_in(partial(_PUT[solid], value), items)
    if solid is collections.defaultdict and factory is not None:
        _FACTORY.__set__(value, unwrapped(factory))
    if attributes is not None:
        spend(_ITEM * len(attributes))
        own = object.__getattribute__(value, "__dict__")
        for name, each in attributes.items():
            own[name] = unwrapped(each)
    if slots is not None:
        found = dict(_slots(cls))
        for name, each in slots.items():
            if name in found:
                found[name].__set__(value, unwrapped(each))
