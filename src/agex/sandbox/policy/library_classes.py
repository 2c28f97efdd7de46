"""Rules of libraries for classes: for their own ones, and for guest classes over them.

A library that is not loaded has no classes, so its policy is not loaded either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from agex.sandbox.classes import host_classes
from agex.sandbox.policy.catalog import STORES, WITH_CLASS_RULES, find, trusted
from agex.sandbox.policy.library import ClassRules

__all__ = [
    "check_class_statement",
    "check_stored",
    "decides_stores",
    "is_settings",
    "makers",
    "private_names",
    "stored_on",
]


@lru_cache(maxsize=1024)
def private_names(class_: type) -> frozenset[str]:
    """Return every private name that the code of a host class uses, and that compiled code follows."""
    return frozenset((*host_classes.private_names(class_), *trusted(class_)))


def makers(class_: type) -> tuple[str, ...]:
    """Return the members by which a class of a library makes others of its objects."""
    return tuple(name for rules in _in_force() for name in rules.makers(class_))


def is_settings(class_: type, name: str) -> bool:
    """Return whether a member holds the settings that a library read when the class was made."""
    return any(rules.is_settings(class_, name) for rules in _in_force())


def check_class_statement(
    namespace: dict[str, Any], class_name: Any, bases: Iterable[Any], said: dict[str, Any]
) -> None:
    """Refuse a guest class over a library's class, where that library would let it reach further.

    Args:
        namespace: of the class body.
        class_name: of the statement.
        bases: of the statement.
        said: the keywords of the class statement.
    """
    for rules in _in_force():
        rules.check_statement(namespace, class_name, bases, said)


def check_stored(class_: type, name: str, value: Any) -> None:
    """Refuse settings that no class statement could have: stored bytes may hold any.

    Raises:
        StateCorrupt: a library would refuse them in a class statement.
    """
    for rules in _in_force():
        if rules.is_settings(class_, name):
            rules.check_stored(class_, value)


def decides_stores(name: str) -> bool:
    """Return whether a library decides about assignments to an attribute of its objects."""
    return name in STORES


def stored_on(receiver: Any, name: str) -> Any:
    """Return the object on which such an attribute of *receiver* is set: a checking one, or the receiver."""
    home = STORES[name]
    library = find(home) if home in sys.modules else None
    return receiver if library is None else library.stored_on(receiver)


def _in_force() -> Iterator[ClassRules]:
    for name in WITH_CLASS_RULES:
        if name in sys.modules and (library := find(name)) is not None and library.classes is not None:
            yield library.classes
