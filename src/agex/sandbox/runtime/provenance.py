"""Where guest code came from: the program of a code object, the body of a class, the session of either.

What is to outlive its session is made again from its source, so the source must be found for
any function and class, whichever session made it.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime.context import guest_asking

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import ClassQuestions, ClassStatement, Membrane, RunningSession

__all__ = [
    "Notes",
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
    """What is known of objects while they live. By identity: a class may have a hash of the guest's."""

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


_sources: Notes[str] = Notes()
_registries: Notes[weakref.ref[ClassQuestions]] = Notes()


def note_source(code: types.CodeType, source: str) -> None:
    """Note the program that a code object was compiled from."""
    _sources.set(code, source)


def source_of(code: types.CodeType) -> str | None:
    """Return the program of a code object of guest code; None for any other."""
    return _sources.get(code)


def note_class(class_: type, registry: ClassQuestions) -> None:
    """Note the session that made a class. The session itself is not kept alive."""
    _registries.set(class_, weakref.ref(registry))


def is_guest_class(class_: type) -> bool:
    """Tell whether a guest of any session made a class, or the one that is asking is about to."""
    if _registries.get(class_) is not None:
        return True
    guards = (
        guest_asking()
    )  # code of the guest's runs before its class is noted: __set_name__, __init_subclass__
    return guards is not None and guards.classes.is_guest(class_)


def guards_of(class_: type) -> Membrane | None:
    """Return the guards of the session that made a class; None for one of the host's, or a session gone."""
    found = _registries.get(class_)
    registry = None if found is None else found()
    return None if registry is None else registry.builtins["check!"].__self__


def may_store(class_: type, name: str) -> bool:
    """Tell whether the guest that made a class may give it an attribute of that name."""
    found = _registries.get(class_)
    registry = None if found is None else found()
    sayable = not ledger.is_denied(name) and (not ledger.is_dunder(name) or name in ledger.STORABLE)
    return registry is not None and sayable and registry.may_store_on_class(class_, name)


def keeps_back(class_: type, name: str) -> bool:
    """Tell whether code of the host's uses a private name on objects of a class over one of its own."""
    found = _registries.get(class_)
    guards = guest_asking()  # its class may be in the making
    registry = None if found is None else found()
    if found is None and guards is not None:
        registry = guards.classes
    if registry is None or not ledger.is_private(name):
        return False
    return registry.is_mixed(class_) and name in registry.host_names(class_)


def statement_of(class_: type) -> ClassStatement | None:
    """Return the statement that made a class of a guest; None where none did."""
    found = _registries.get(class_)
    registry = None if found is None else found()
    return None if registry is None else registry.statement_of(class_)


def altered(class_: type, *, dressed: bool) -> frozenset[str]:
    """Return the names that were set or deleted on a guest's class since its statement ended.

    With *dressed* also those that a decorator of the statement set or deleted.
    """
    statement = statement_of(class_)
    if statement is None:
        return frozenset()
    return frozenset(statement.altered | (statement.dressed if dressed else set()))


_BUILTINS_OF: Callable[[Any], dict[str, Any]] = vars(types.FunctionType)["__builtins__"].__get__


def session_of(function: types.FunctionType) -> RunningSession | None:
    """Return the session whose guest wrote a function; None for a function of the host."""
    return session_in(_BUILTINS_OF(function))


def session_in(builtins: Mapping[str, Any]) -> RunningSession | None:
    """Return the session whose guest has these builtins; None where they are the host's."""
    return cast("RunningSession | None", getattr(builtins.get("trip!"), "__self__", None))
