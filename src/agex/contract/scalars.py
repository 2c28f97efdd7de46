"""Checks of values without parts: numbers, text, Literal, Enum, classes, callables."""

from __future__ import annotations

import datetime as dt
import inspect
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from types import FunctionType, MethodType
from typing import Any

import typing_extensions

from agex.contract.mismatch import Mismatch
from agex.contract.real_types import is_a, is_subclass, numpy_number
from agex.contract.walk import Check, Walk

__all__ = [
    "EXACT",
    "NUMBERS",
    "anything",
    "array_check",
    "callable_check",
    "enum_check",
    "exact_check",
    "instance_check",
    "is_nat",
    "literal_check",
    "members_check",
    "number_check",
    "protocol_check",
    "type_check",
]

NUMBERS: dict[type, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (float, int),
    complex: (complex, float, int),
}
"""The types accepted for each kind of number (PEP 484): a float may be an int. A bool is only a bool."""


def anything(value: Any, walk: Walk) -> Any:
    """Accept every value."""
    return value


def number_check(kind: type) -> Check:
    """Make the check of int, float, complex or bool."""
    accepted = NUMBERS[kind]
    expected = f"expected {kind.__name__}"

    def check(value: Any, walk: Walk) -> Any:
        if type(value) is kind:
            return value
        number = numpy_number(value)
        found = value if number is None else number
        if not any(is_subclass(type(found), each) for each in accepted) or (type(found) is bool is not kind):
            raise Mismatch.of(expected, value)
        return value if walk.keep_numbers else found

    return check


def instance_check(cls: type, expected: str) -> Check:
    """Make the check of a plain class."""

    def check(value: Any, walk: Walk) -> Any:
        if type(value) is cls or is_a(value, cls):
            return value
        raise Mismatch.of(expected, value)

    return check


def is_nat(value: Any) -> bool:
    """Return whether *value* is pandas' missing moment, whose class derives from ``datetime``."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and value is getattr(pandas, "NaT", None)


def _is_moment(value: Any) -> bool:
    return is_subclass(type(value), dt.datetime)


def _is_infinite(value: Any) -> bool:
    return not Decimal.is_finite(value)


EXACT: dict[type, Callable[[Any], bool]] = {
    dt.datetime: is_nat,
    dt.date: _is_moment,
    Decimal: _is_infinite,
}
"""Classes with instances that are no value of the type, and the test for those: as pydantic's strict mode."""


def exact_check(cls: type, expected: str) -> Check:
    """Make the check of a class of :data:`EXACT`."""
    is_instance, is_other = instance_check(cls, expected), EXACT[cls]
    exactly = f"{expected} that is finite" if cls is Decimal else expected

    def check(value: Any, walk: Walk) -> Any:
        if is_other(is_instance(value, walk)):
            raise Mismatch.of(exactly, value)
        return value

    return check


def enum_check(cls: type[Enum], expected: str) -> Check:
    """Make the check of an Enum: a member, never its value; the error names the member."""
    is_member = instance_check(cls, expected)

    def check(value: Any, walk: Walk) -> Any:
        try:
            return is_member(value, walk)
        except Mismatch:
            hint = _member_for(cls, value)
            raise Mismatch.of(f"{expected}{f' (write {hint})' if hint else ''}", value) from None

    return check


def _member_for(cls: type[Enum], value: Any) -> str | None:
    if type(value) not in (str, int, float, bytes):
        return None
    for name, member in cls.__members__.items():
        same = type(member.value) is type(value) and member.value == value
        if same or (type(value) is str and value.lower() == name.lower()):
            return f"{cls.__name__}.{name}"
    return None


def literal_check(choices: Sequence[Any], expected: str) -> Check:
    """Make the check of a Literal: same type and equal, so that True is not 1."""

    def check(value: Any, walk: Walk) -> Any:
        number = numpy_number(value)
        found = value if number is None else number
        for choice in choices:
            if found is choice or (type(choice) is type(found) and choice == found):
                return value if walk.keep_numbers else found
        raise Mismatch.of(expected, value)

    return check


def type_check(bounds: Sequence[type] | None, expected: str) -> Check:
    """Make the check of ``type[X]``: a class that derives from one of *bounds*."""

    def check(value: Any, walk: Walk) -> Any:
        is_class = is_subclass(type(value), type)
        if is_class and (bounds is None or any(_derives(value, bound) for bound in bounds)):
            return value
        raise Mismatch.of(expected, value)

    return check


def _derives(cls: type, bound: type) -> bool:
    return is_subclass(cls, bound) or (type(bound) is not type and issubclass(cls, bound))


def callable_check(arity: int | None, expected: str) -> Check:
    """Make the check of ``Callable``: callable, and with *arity* positional arguments."""

    def check(value: Any, walk: Walk) -> Any:
        if not callable(value):
            raise Mismatch.of(expected, value)
        if arity is not None and not _takes(value, arity):
            arguments = f"{arity} positional argument{'s' * (arity != 1)}"
            raise Mismatch.of(f"{expected}, called with {arguments}", value)
        return value

    return check


def _takes(function: Callable[..., Any], arity: int) -> bool:
    follow = type(function) not in (FunctionType, MethodType)
    try:
        signature = inspect.signature(function, follow_wrapped=follow)
    except (TypeError, ValueError):
        return True  # Builtins in C need not say what they take.
    try:
        signature.bind(*(None,) * arity)
    except TypeError:
        return False
    return True


def protocol_check(cls: type, expected: str) -> Check:
    """Make the check of a Protocol: every member is there, or the class derives from it."""
    has_members = members_check(sorted(typing_extensions.get_protocol_members(cls)), expected)

    def check(value: Any, walk: Walk) -> Any:
        return value if is_subclass(type(value), cls) else has_members(value, walk)

    return check


def members_check(names: Sequence[str], expected: str) -> Check:
    """Make a check that a value has members, found without running any hook."""

    def check(value: Any, walk: Walk) -> Any:
        missing = [name for name in names if not _has(value, name)]
        if missing:
            raise Mismatch.of(f"{expected} (without {', '.join(missing)})", value)
        return value

    return check


def _has(value: Any, name: str) -> bool:
    nothing = object()
    found = inspect.getattr_static(value, name, nothing)
    return found is not nothing and not (found is None and name == "__hash__")


def array_check(cls: type, ndim: int | None, scalar: type | None, expected: str) -> Check:
    """Make the check of ``numpy.ndarray[shape, dtype]``: the class, the dimensions, the dtype."""

    def check(value: Any, walk: Walk) -> Any:
        if not is_subclass(type(value), cls):
            raise Mismatch.of(expected, value)
        if scalar is not None and not issubclass(value.dtype.type, scalar):
            raise Mismatch.of(f"expected dtype {scalar.__name__}, got dtype {value.dtype}")
        if ndim is not None and value.ndim != ndim:
            raise Mismatch.of(f"expected {ndim} dimensions, got shape {value.shape}")
        return value

    return check
