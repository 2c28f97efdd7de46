"""The TypedDicts of one server: each with a name of its own, filled when its fields are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NotRequired

from typing_extensions import TypedDict

from agex.mcp.names import identifier, one_line

__all__ = ["TypedDicts"]

CLASSES = 200
"""Of one server; any further object is ``dict[str, Any]``."""
DOC_CHARS = 120


class TypedDicts:
    """Makes TypedDicts. A class is there before it has fields, for it may contain itself.

    Args:
        home: the name of the module they are in.
        taken: names that no class may have: it would stand in place of something else.
    """

    def __init__(self, home: str, taken: Iterable[str]) -> None:
        self._home = home
        self._taken = {*taken}
        self._numbers: dict[str, int] = {}
        self._by_key: dict[str, type] = {}

    @property
    def is_full(self) -> bool:
        """Whether no further class is made."""
        return len(self._by_key) >= CLASSES

    def get(self, text: str, key: str) -> tuple[type, bool]:
        """Return the class of what *key* says, and whether it is new and has to be filled.

        Args:
            text: a stranger's name for it.
            key: what makes two classes of one name the same.
        """
        base = _class_name(text)
        key = f"{base}: {key}"
        if key in self._by_key:
            return self._by_key[key], False
        cls = _empty(self._distinct(base), self._home)
        self._by_key[key] = cls
        return cls, True

    def fill(
        self, cls: type, fields: Mapping[str, Any], *, required: AbstractSet[str], hidden: int, doc: str
    ) -> None:
        """Fill a class.

        Args:
            cls: from `get`.
            fields: the keys of its dicts, with the types of their values.
            required: the keys that each of its dicts has.
            hidden: how many keys more there are.
            doc: a stranger's description.
        """
        filled: Any = cls
        filled.__annotations__ = {
            name: kind if name in required else NotRequired[kind] for name, kind in fields.items()
        }
        filled.__required_keys__ = frozenset(fields) & frozenset(required)
        filled.__optional_keys__ = frozenset(fields) - frozenset(required)
        more = f"{hidden} more keys are not shown." if hidden else ""
        filled.__doc__ = f"{one_line(doc, DOC_CHARS)} {more}".strip() or None

    def by_name(self) -> dict[str, type]:
        """Return the classes, by their names."""
        return {cls.__name__: cls for cls in self._by_key.values()}

    def _distinct(self, base: str) -> str:
        name = base
        while name in self._taken:
            self._numbers[base] = self._numbers.get(base, 1) + 1
            name = f"{base}_{self._numbers[base]}"
        self._taken.add(name)
        return name


def _class_name(text: str) -> str:
    """Return a stranger's text as the name of a class: ``order_line items`` is ``OrderLineItems``."""
    words = identifier(text, "Data").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)


def _empty(name: str, home: str) -> type:
    make: Any = TypedDict  # checkers want a literal as the name
    made: type = make(name, {})
    made.__module__ = home
    return made
