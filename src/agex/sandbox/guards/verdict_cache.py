"""A cache of verdicts about attributes, by class: a check takes microseconds."""

from __future__ import annotations

import abc
import types
from typing import Any

from agex.sandbox.rules.ruleset import Rules
from agex.sandbox.stdlib.generic_alias import origin_of

__all__ = ["Verdicts"]

_Key = type | types.ModuleType


class Verdicts:
    """The names that may be read from objects of a class, and those that may be set.

    They are valid until the next registration. Refusals are not cached.
    """

    def __init__(self) -> None:
        self._rules: Rules | None = None
        self._read: dict[_Key, set[str]] = {}
        self._stored: dict[_Key, set[str]] = {}

    def may_read(self, rules: Rules, receiver: Any, name: str) -> bool:
        """Return whether *name* is known to be readable from *receiver*."""
        return self._knows(rules, self._read, receiver, name)

    def may_store(self, rules: Rules, receiver: Any, name: str) -> bool:
        """Return whether *name* is known to be settable on *receiver*."""
        return self._knows(rules, self._stored, receiver, name)

    def _knows(self, rules: Rules, names: dict[_Key, set[str]], receiver: Any, name: str) -> bool:
        if rules is not self._rules:
            self._read.clear()
            self._stored.clear()
            self._rules = rules  # last: if interrupted before, the next call clears them
            return False
        class_ = type(receiver)
        kind = type(class_)
        # Another metaclass could be guest code, with its own __hash__ and __eq__.
        if kind is not type and kind is not abc.ABCMeta:
            return False
        return name in names.get(receiver if class_ is types.ModuleType else class_, ())

    def let_read(self, receiver: Any, name: str) -> None:
        """Note that *name* may be read from *receiver* and all objects of its class."""
        self._note(self._read, receiver, name)

    def let_store(self, receiver: Any, name: str) -> None:
        """Note that *name* may be set on *receiver* and all objects of its class."""
        if type(receiver) is not types.ModuleType and type(receiver) is not types.FunctionType:
            self._note(self._stored, receiver, name)

    def _note(self, names: dict[_Key, set[str]], receiver: Any, name: str) -> None:
        class_ = type(receiver)
        kind = type(class_)
        if kind is not type and kind is not abc.ABCMeta:
            return
        if class_ is types.ModuleType:
            names.setdefault(receiver, set()).add(name)
        elif not _speaks_for_another(class_) and origin_of(receiver) is receiver:
            names.setdefault(class_, set()).add(name)

    def forget_stores(self) -> None:
        """Forget which names may be set: an altered guest class may no longer hide a method."""
        self._stored.clear()


def _speaks_for_another(class_: type) -> bool:
    """Return whether instances are classes or answer for others, so that each needs its own verdict."""
    return issubclass(class_, (type, super, types.ModuleType))
