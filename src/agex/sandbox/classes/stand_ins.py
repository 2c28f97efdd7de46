"""The register of classes that stand in for classes of the standard library.

Some classes of the standard library do more for their caller than guest code may: a real
``SimpleNamespace`` tells numpy any address, a real ``cached_property`` reads any name of any object. Guest
code gets other classes of the same names. But an object that the host or the library made is of the real
class, and ``type(x)`` or the bases of a class lead there; these answer with the stand-in.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from agex.errors import SandboxTypeError

__all__ = ["REAL_OF", "LazyMeta", "closed", "is_ours", "is_stand_in", "note_ours", "shown", "stands_for"]

# By identity: a guest metaclass could define __hash__ and __eq__.
_INSTEAD: dict[int, tuple[type, type]] = {}
_STAND_INS: dict[int, type] = {}
_OURS: dict[int, type] = {}


def stands_for(real: type, instead: type) -> type:
    """Register *instead* as the stand-in of *real*, and return it."""
    _INSTEAD[id(real)] = real, instead
    _STAND_INS[id(instead)] = instead
    return instead


def shown(class_: type) -> type:
    """Return the class that guest code gets for *class_*; mostly the class itself."""
    known = _INSTEAD.get(id(class_))
    if known is not None:
        return known[1]
    return closed(class_) if _is_future(class_) else class_


def is_stand_in(class_: type) -> bool:
    """Return whether a class stands in for one of the standard library."""
    return id(class_) in _STAND_INS


def note_ours(class_: type) -> None:
    """Register a class of the sandbox that guest code gets as a member of the standard library."""
    _OURS[id(class_)] = class_


def is_ours(class_: type) -> bool:
    """Return whether a class belongs to the sandbox: it holds no secrets and guards itself."""
    return id(class_) in _OURS or is_stand_in(class_)


def _is_future(class_: type) -> bool:
    """Return whether a class is a future, which calls any event loop in the context of the host."""
    futures: Any = sys.modules.get("asyncio.futures")
    return futures is not None and issubclass(class_, (futures.Future, futures._PyFuture))


class _ClosedMeta(type):
    """The metaclass of classes that guest code may name, and neither call nor derive from."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> _ClosedMeta:
        if bases:
            raise SandboxTypeError(f"{bases[0].__name__} cannot be subclassed here; keep one in an attribute")
        return super().__new__(cls, name, bases, namespace)

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise SandboxTypeError(f"{cls.__name__} cannot be constructed here; use the functions that make one")

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _CLOSED[id(cls)])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return id(subclass) == id(cls) or issubclass(subclass, _CLOSED[id(cls)])


_CLOSED: dict[int, type] = {}


def closed(real: type) -> type:
    """Return the stand-in of a class whose instances guest code holds and may not make."""
    namespace = {"__module__": real.__module__, "__doc__": real.__doc__, "__slots__": ()}
    made = _ClosedMeta(real.__name__, (), namespace)
    _CLOSED[id(made)] = real
    return stands_for(real, made)


class LazyMeta(type):
    """The metaclass of the guarded iterator types (``map``, ``zip``), which have no subclasses."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> LazyMeta:
        if bases and isinstance(bases[0], LazyMeta):
            raise SandboxTypeError(f"{bases[0].__name__} cannot be subclassed here; write a generator")
        return super().__new__(cls, name, bases, namespace)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, REAL_OF[cls])


REAL_OF: dict[type, type] = {}
"""The iterator type of the interpreter behind each class. No attribute, which guest code could read."""
