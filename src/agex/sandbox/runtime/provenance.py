"""The origin of guest code: the source of a code object, the statement of a class, the session of either.

Functions and classes that outlive their session are made again from source, so the source must be found for
any of them, whichever session made it.
"""

from __future__ import annotations

import functools
import itertools
import types
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agex._interpreter.type_slots import is_static
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime.context import guest_asking

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import ClassQuestions, Membrane, RunningSession

__all__ = [
    "Notes",
    "Statement",
    "altered",
    "guards_of",
    "is_guest_class",
    "may_store",
    "note_class",
    "note_source",
    "session_in",
    "session_of",
    "source_of",
    "statement_of",
]

T = TypeVar("T")


class Notes(Generic[T]):
    """Notes on objects while they live, by identity: the hash of a guest class may be guest code."""

    def __init__(self) -> None:
        self._notes: dict[int, tuple[weakref.ref[Any], T]] = {}

    def set(self, subject: Any, note: T) -> None:
        key = id(subject)
        notes = self._notes
        # A callback in C: in one in Python a time limit may strike, and be lost as all errors there are.
        notes[key] = (weakref.ref(subject, functools.partial(notes.pop, key)), note)

    def get(self, subject: Any) -> T | None:
        found = self._notes.get(id(subject))
        return found[1] if found is not None and found[0]() is subject else None


class Statement:
    """A class statement of guest code as it ran, and later changes of its class.

    Attributes:
        body: the function that made the namespace.
        bases: as they were written.
        keywords: of the statement.
        dressed: names that a decorator of the statement set or deleted on the class.
        altered: names that were set or deleted since the statement ended.
        number: of the statement, in the order in which statements began.
    """

    __slots__ = ("altered", "bases", "body", "dressed", "keywords", "number")

    _numbers = itertools.count()

    def __init__(self, body: types.FunctionType, bases: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.body = body
        self.bases = bases
        self.keywords = keywords
        self.dressed: set[str] = set()
        self.altered: set[str] = set()
        self.number = next(self._numbers)


_sources: Notes[str] = Notes()
_registries: Notes[weakref.ref[ClassQuestions]] = Notes()


def note_source(code: types.CodeType, source: str) -> None:
    """Note the source that a code object was compiled from."""
    _sources.set(code, source)


def source_of(code: types.CodeType) -> str | None:
    """Return the source of a code object of guest code; None for any other."""
    return _sources.get(code)


def note_class(class_: type, registry: ClassQuestions) -> None:
    """Note the session that made a class. The note does not keep the session alive."""
    _registries.set(class_, weakref.ref(registry))


def is_guest_class(class_: type) -> bool:
    """Return whether guest code of any session made a class, or is about to make it."""
    if is_static(class_):
        return False
    if _registries.get(class_) is not None:
        return True
    guards = guest_asking()  # __set_name__ and __init_subclass__ run before the class is noted
    return guards is not None and guards.classes.is_guest(class_)


def guards_of(class_: type) -> Membrane | None:
    """Return the guards of the session that made a class; None for a host class or a lost session."""
    found = _registries.get(class_)
    registry = None if found is None else found()
    return None if registry is None else registry.builtins["check!"].__self__


def may_store(class_: type, name: str) -> bool:
    """Return whether guest code may set an attribute of that name on its class."""
    found = _registries.get(class_)
    registry = None if found is None else found()
    sayable = not ledger.is_denied(name) and (not ledger.is_dunder(name) or name in ledger.STORABLE)
    return registry is not None and sayable and registry.may_store_on_class(class_, name)


def keeps_back(class_: type, name: str) -> bool:
    """Return whether host code uses a private name on objects of a guest class over a host class."""
    found = _registries.get(class_)
    guards = guest_asking()  # its class may be in the making
    registry = None if found is None else found()
    if found is None and guards is not None:
        registry = guards.classes
    if registry is None or not ledger.is_private(name):
        return False
    return registry.is_mixed(class_) and name in registry.host_names(class_)


def statement_of(class_: type) -> Statement | None:
    """Return the statement that made a guest class; None where none did."""
    found = _registries.get(class_)
    registry = None if found is None else found()
    return None if registry is None else registry.statement_of(class_)


def altered(class_: type, *, dressed: bool) -> frozenset[str]:
    """Return the names that were set or deleted on a guest class since its statement ended.

    With *dressed* also those that a decorator of the statement set or deleted.
    """
    statement = statement_of(class_)
    if statement is None:
        return frozenset()
    return frozenset(statement.altered | (statement.dressed if dressed else set()))


_BUILTINS_OF: Callable[[Any], dict[str, Any]] = vars(types.FunctionType)["__builtins__"].__get__


def session_of(function: types.FunctionType) -> RunningSession | None:
    """Return the session whose guest code defined a function; None for a host function."""
    return session_in(_BUILTINS_OF(function))


def session_in(builtins: Mapping[str, Any]) -> RunningSession | None:
    """Return the session that these builtins belong to; None for builtins of the host."""
    return cast("RunningSession | None", getattr(builtins.get("trip!"), "__self__", None))
