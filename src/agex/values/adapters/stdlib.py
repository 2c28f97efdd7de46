"""Values of the standard library: how each type is taken apart, and made again.

A ``take_*`` function returns a reduction as `pickle` has it. A ``make_*`` function is called by the
decoder, with arguments from anyone who can write the store. So it trusts no argument that could run code or
build anything but a value of its type.
"""

from __future__ import annotations
import __future__

import array
import collections
import datetime as dt
import decimal
import fractions
import io
import ipaddress
import pathlib
import random
import re
import sys
import types
import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from typing import Any

from agex._interpreter.typed_array import TypedArray
from agex.values.adapters import exceptions
from agex.values.base.decode_budget import put_in, spend
from agex.values.base.handle import unwrapped
from agex.values.base.placeholders import NotKept, make_not_kept, take_not_kept

__all__ = ["CONSTANTS", "CONSTRUCTORS", "KINDS", "NATIVE", "fill_attributes"]

NATIVE: tuple[type, ...] = (
    dt.date, dt.datetime, dt.time, dt.timedelta, dt.timezone, decimal.Decimal,
    complex, range, slice,
)  # fmt: skip
"""Types that the pickler takes apart itself, by a constructor in C that makes nothing else."""

CONSTANTS: Mapping[str, Any] = {"Ellipsis": ..., "NotImplemented": NotImplemented}


def make_uuid(number: int) -> uuid.UUID:
    return uuid.UUID(int=number)


def make_fraction(numerator: int, denominator: int) -> fractions.Fraction:
    if not (type(numerator) is type(denominator) is int and denominator > 0):
        raise ValueError("a fraction is of two integers, the lower one above zero")
    if max(numerator.bit_length(), denominator.bit_length()) <= _QUICKLY_DIVIDED:
        return fractions.Fraction(numerator, denominator)
    made = object.__new__(fractions.Fraction)
    made._numerator, made._denominator = numerator, denominator  # type: ignore[attr-defined]
    return made


_QUICKLY_DIVIDED = 1024
"""Bits of integers that are brought to lowest terms again. The time of that grows with their square, to
seconds for what a worker can send; larger ones are taken to be in lowest terms, as they were kept."""


def make_zone(key: str) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(key)


def take_zone(_encoder: Any, zone: zoneinfo.ZoneInfo) -> Any:
    if not zone.key:
        raise ValueError("a time zone without a key cannot be found again")
    return make_zone, (zone.key,)


_PATHS: Mapping[str, type[pathlib.PurePath]] = {
    "posix": pathlib.PurePosixPath,
    "windows": pathlib.PureWindowsPath,
    "path": pathlib.Path,
}


def make_path(kind: str, text: str) -> pathlib.PurePath:
    spend(4 * len(text) + _SMALL)
    return _PATHS[kind](text)


def take_path(_encoder: Any, path: pathlib.PurePath) -> Any:
    concrete = isinstance(path, pathlib.Path)
    kind = "path" if concrete else "posix" if isinstance(path, pathlib.PurePosixPath) else "windows"
    return make_path, (kind, str(path))


def make_pattern(pattern: str | bytes, flags: int) -> re.Pattern[Any]:
    spend(_cost_of(pattern, flags))
    return re.compile(pattern, flags & ~re.DEBUG)  # which prints


_PATTERN, _PATTERN_CHAR, _PATTERN_RANGE = 2048, 100, 24 * 1024
"""Costs of a pattern, of each of its characters (the parser in Python takes a microsecond for one), and of
each range beyond ASCII, which becomes a table of 64 KB."""
_FOLDED = 4
"""Cost of a character in a range that ignores case."""


def _cost_of(pattern: str | bytes, flags: int) -> int:
    cost = _PATTERN + _PATTERN_CHAR * len(pattern)
    if isinstance(pattern, bytes):
        return cost
    widths = [ord(each[2]) - ord(each[0]) for each in _WIDE_RANGES.findall(pattern)]
    widths += [int(high, 16) - int(low, 16) for low, high in _ESCAPED_RANGES.findall(pattern)]
    widths += [sys.maxunicode] * len(_OTHER_RANGES.findall(_ESCAPED_RANGES.sub("", pattern)))
    if flags & re.IGNORECASE or "(?" in pattern:
        cost += _FOLDED * sum(map(abs, widths))
    return cost + _PATTERN_RANGE * len(widths)


_WIDE_RANGES = re.compile(r"[^\\]-[^\x00-\x7f]|[^\x00-\x7f]-[^\\]")
_ESCAPED_RANGES = re.compile(r"\\[xuU]([0-9a-fA-F]{2,8})-\\[xuU]([0-9a-fA-F]{2,8})")
_OTHER_RANGES = re.compile(r"\\[xuUN0-7][^-\\]*-|-\\[xuUN0-7]|\\[DSW]")
_ADDRESS_TYPES: tuple[type, ...] = (
    ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network,
    ipaddress.IPv4Interface, ipaddress.IPv6Interface,
)  # fmt: skip
_ADDRESSES = {cls.__name__: cls for cls in _ADDRESS_TYPES}


def make_address(kind: str, text: str) -> Any:
    return _ADDRESSES[kind](text)


def make_frozenset(items: list[Any]) -> frozenset[Any]:
    """Make a frozenset of many items, with a look at the clock now and then."""
    made: set[Any] = set()
    put_in(made.update, items)
    return frozenset(made)


def make_deque(maxlen: int | None) -> collections.deque[Any]:
    return collections.deque(maxlen=maxlen)


def make_ordered() -> collections.OrderedDict[Any, Any]:
    return collections.OrderedDict()


def make_counter() -> collections.Counter[Any]:
    return collections.Counter()


def make_defaultdict(factory: Any) -> collections.defaultdict[Any, Any]:
    factory = unwrapped(factory)
    return collections.defaultdict(None if isinstance(factory, NotKept) else factory)


def make_chain(*maps: Any) -> collections.ChainMap[Any, Any]:
    spend(_SMALL + 8 * len(maps))
    return collections.ChainMap(*maps)


def make_simple() -> types.SimpleNamespace:
    return types.SimpleNamespace()


def fill_attributes(value: Any, attributes: dict[str, Any]) -> None:
    """Set the attributes of an exception or a simple namespace."""
    if not isinstance(value, (BaseException, types.SimpleNamespace)):
        raise TypeError(f"attributes for a {type(value).__name__}")
    spend(_ATTRIBUTE * len(attributes))
    for name, each in attributes.items():
        if type(name) is str and (name == "__notes__" or not name.startswith("__")):
            vars(value)[name] = unwrapped(each)


def take_simple(_encoder: Any, value: types.SimpleNamespace) -> Any:
    return make_simple, (), vars(value), None, None, fill_attributes


def make_random(state: tuple[Any, ...]) -> random.Random:
    spend(_RANDOM)
    made = random.Random(0)  # noqa: S311 - a generator of guest code
    made.setstate(state)
    return made


_SMALL, _RANDOM = 256, 3072
"""Bytes of a small object, and of a generator of random numbers."""


def make_numbers(code: str, data: bytes) -> array.array[Any]:
    return _filled(array.array(code), data)


def make_typed_array(code: str, data: bytes) -> array.array[Any]:
    return _filled(TypedArray(code), data)


def _filled(made: array.array[Any], data: bytes) -> array.array[Any]:
    spend(len(data))
    made.frombytes(data)
    return made


def make_text_buffer(text: str, position: int, newline: str | None = "") -> io.StringIO:
    if newline not in {None, "", "\n", "\r", "\r\n"}:
        raise ValueError("unknown line ends")
    spend(_SMALL + 4 * len(text))
    made = io.StringIO()
    restore: Any = vars(io.StringIO)["__setstate__"]
    restore(made, (text, newline, position, None))  # the text as it is: its line ends were translated
    return made


def take_text_buffer(_encoder: Any, buffer: Any) -> Any:
    text, newline, position, _ = buffer.__getstate__()
    return make_text_buffer, (text, position, newline)


def make_byte_buffer(data: bytes, position: int) -> io.BytesIO:
    spend(_SMALL + (0 if type(data) is bytes else len(data)))  # it shares bytes until it is written to
    made = io.BytesIO(data)
    made.seek(position)
    return made


_ATTRIBUTE = 32


def make_exception(name: str, args: tuple[Any, ...]) -> BaseException:
    spend(8 * len(args))
    return exceptions.BUILTIN[name](*args)


def take_exception(encoder: Any, error: BaseException) -> Any:
    attributes = vars(error) or None
    args, fields = exceptions.take(error, encoder.captures)
    if fields.keys() == {"args"} and not isinstance(error, exceptions.STRUCTURED):
        known = (type(error).__name__, fields["args"])
        return make_exception, known, attributes, None, None, fill_attributes
    state = (attributes, fields)
    known = (type(error).__name__, args)
    return exceptions.make_blank_exception, known, state, None, None, exceptions.fill_exception


_FEATURES = {name: getattr(__future__, name) for name in __future__.all_feature_names}


def make_feature(name: str) -> Any:
    return _FEATURES[name]


def take_feature(_encoder: Any, feature: Any) -> Any:
    """Keep the feature that ``from __future__ import annotations`` binds, by its name."""
    return make_feature, (next(name for name, each in _FEATURES.items() if each is feature),)


Kind = Callable[[Any, Any], Any]

KINDS: Mapping[type, Kind] = {
    NotKept: take_not_kept,
    type(__future__.annotations): take_feature,
    uuid.UUID: lambda _, value: (make_uuid, (value.int,)),
    fractions.Fraction: lambda _, value: (make_fraction, (value.numerator, value.denominator)),
    zoneinfo.ZoneInfo: take_zone,
    pathlib.PurePosixPath: take_path,
    pathlib.PureWindowsPath: take_path,
    type(pathlib.Path()): take_path,
    re.Pattern: lambda _, value: (make_pattern, (value.pattern, value.flags)),
    **dict.fromkeys(_ADDRESS_TYPES, lambda _, value: (make_address, (type(value).__name__, str(value)))),
    collections.deque: lambda _, value: (make_deque, (value.maxlen,), None, iter(value)),
    collections.OrderedDict: lambda _, value: (make_ordered, (), None, None, iter(value.items())),
    collections.Counter: lambda _, value: (make_counter, (), None, None, iter(value.items())),
    collections.defaultdict: lambda encoder, value: (
        make_defaultdict, (encoder.top(value.default_factory),), None, None, iter(value.items()),
    ),
    collections.ChainMap: lambda _, value: (make_chain, tuple(value.maps)),
    types.SimpleNamespace: take_simple,
    random.Random: lambda _, value: (make_random, (value.getstate(),)),
    array.array: lambda _, value: (make_numbers, (value.typecode, value.tobytes())),
    TypedArray: lambda _, value: (make_typed_array, (value.typecode, value.tobytes())),
    io.StringIO: take_text_buffer,
    io.BytesIO: lambda _, value: (make_byte_buffer, (value.getvalue(), value.tell())),
    **dict.fromkeys(exceptions.BUILTIN.values(), take_exception),
}  # fmt: skip

CONSTRUCTORS: tuple[Callable[..., Any], ...] = (
    make_not_kept, make_feature, make_uuid, make_fraction, make_zone, make_path, make_pattern, make_address,
    make_deque, make_frozenset, make_ordered, make_counter, make_defaultdict, make_chain, make_simple,
    fill_attributes, make_random, make_numbers, make_typed_array, make_text_buffer, make_byte_buffer,
    make_exception, *exceptions.CONSTRUCTORS,
)  # fmt: skip
"""Functions that the decoder may call."""
