"""Tables that show variables, a cache and files, of a state and of a state as it was."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from agex import values
from agex.display import Part, Table
from agex.errors import UnpicklableVariableError
from agex.state.base import Past, State
from agex.state.working.stored_variables import Unreadable

__all__ = ["counts", "held_parts", "names_of"]

VARIABLES = 50
"""Variables that are read and shown."""
FILES = 50
NOT_KEPT = "(not kept: it cannot be written down)"
UNREADABLE = "(kept, but it cannot be read again)"


class _Named(Protocol):
    def branches(self) -> Mapping[str, str]: ...

    def tags(self) -> Mapping[str, str]: ...


def names_of(state: _Named) -> dict[str, list[str]]:
    """Return the branches and tags on each commit, by the commit."""
    names: dict[str, list[str]] = {}
    for kind, found in (("", state.branches()), ("tag ", state.tags())):
        for name, commit in found.items():
            names.setdefault(commit, []).append(f"{kind}{name}")
    return names


def counts(held: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how many variables there are, in words."""
    return (f"{len(held):,} variable{'' if len(held) == 1 else 's'}",)


def held_parts(held: State | Past, cache: Mapping[str, Any], files: Iterable[str]) -> Iterator[Part]:
    """Yield tables of the variables, the cache and the files."""
    names = list(held)
    if names:
        left_out = len(names) - VARIABLES
        note = (
            f"… and {left_out:,} more: {', '.join(names[VARIABLES : VARIABLES + 10])}" if left_out > 0 else ""
        )
        rows = [_variable(held, name) for name in names[:VARIABLES]]
        yield Table(head=("variable", "type", "value"), rows=rows, note=note)
    try:
        size = len(cache)
    except UnpicklableVariableError:
        yield Table(head=("key", "type", "value"), rows=[("", "", UNREADABLE)], label="cache")
        size = 0
    if size:
        kept = [
            _described(str(key), value) for key, value in itertools.islice(_plain_items(cache), VARIABLES)
        ]
        note = f"… of {size:,}" if size > len(kept) else ""
        yield Table(head=("key", "type", "value"), rows=kept, label="cache", note=note)
    paths = list(itertools.islice(files, FILES + 1))
    if paths:
        more = "… and more" if len(paths) > FILES else ""
        yield Table(head=("file",), rows=[(path,) for path in paths[:FILES]], note=more)


def _plain_items(cache: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the items of a cache, its keys as text: agents may use keys of any class."""
    for key, value in cache.items():
        yield values.show_value(key) or f"<{values.type_name(key)}>", value


def _variable(held: State | Past, name: str) -> tuple[str, str, str]:
    try:
        return _described(name, held.sketch(name))
    except Unreadable:
        return name, "", UNREADABLE
    except UnpicklableVariableError:
        return name, "", NOT_KEPT


def _described(name: str, value: Any) -> tuple[str, str, str]:
    return name, values.type_name(value), values.show_value(value) or ""
