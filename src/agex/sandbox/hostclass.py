"""What can be read off a class of the host, without running it."""

from __future__ import annotations

import types
from collections.abc import Iterator
from functools import lru_cache

from agex.sandbox import ledger
from agex.typeslots import mro_of

__all__ = ["is_static", "private_names", "public_names"]

_HEAPTYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_FLAGS = type.__dict__["__flags__"].__get__


def is_static(class_: type) -> bool:
    """Tell whether *class_* is built into the interpreter: it holds no secrets of a program."""
    return not _FLAGS(class_) & _HEAPTYPE


@lru_cache(maxsize=1024)
def private_names(class_: type) -> frozenset[str]:
    """Give every private name that the code of *class_* or of its bases uses.

    Names in its namespace, its slots and its annotations, and all names that its functions
    read or write: an attribute set by ``__init__`` shows nowhere else.
    """
    return frozenset(name for name in _names(class_) if ledger.is_private(name))


@lru_cache(maxsize=1024)
def public_names(class_: type) -> frozenset[str]:
    """Give every public member of *class_*: its attributes, and those its code assigns."""
    return frozenset(n for n in _names(class_) if not n.startswith("_")) | _attributes(class_)


def _attributes(class_: type) -> frozenset[str]:
    return frozenset(n for base in mro_of(class_) for n in vars(base) if not n.startswith("_"))


def _names(class_: type) -> Iterator[str]:
    for base in mro_of(class_):
        if is_static(base):
            continue
        yield from vars(base)
        slots = vars(base).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots
        yield from vars(base).get("__annotations__", ())
        for member in vars(base).values():
            for function in _functions(member):
                yield from _code_names(function.__code__)


def _functions(member: object) -> Iterator[types.FunctionType]:
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    parts = (member.fget, member.fset, member.fdel) if isinstance(member, property) else (member,)
    for part in parts:
        function = getattr(part, "__wrapped__", part)
        if isinstance(function, types.FunctionType):
            yield function


def _code_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_names(constant)
