"""What there is to see of states and of what they were."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agex import values
from agex.display import Page, Part, Table
from agex.errors import UnpicklableVariableError
from agex.state.commits.history import COMMIT_HEAD, SHORT, commit_rows, when
from agex.state.commits.unreadable_values import Unreadable

if TYPE_CHECKING:
    from agex.state.live import Live
    from agex.state.versioned import Snapshot, Versioned

__all__ = ["live_page", "names_of", "snapshot_page", "versioned_page"]

VARIABLES = 50
"""That are read and shown."""
FILES = 50
COMMITS = 10
"""Of the newest."""
NOT_KEPT = "(not kept: it cannot be written down)"
UNREADABLE = "(kept, but it cannot be read again)"


def live_page(state: Live) -> Page:
    """Show a live state: its variables and its cache."""
    return Page(title="Live", facts=_counts(state), parts=tuple(_held(state, state.cache, state.files)))


def snapshot_page(past: Snapshot) -> Page:
    """Show what a state was at a commit."""
    commit = past.commit
    facts = (when(commit.time), *([commit.message] if commit.message else []), *_counts(past))
    parts = tuple(_held(past, past.cache, past.files))
    return Page(title=f"snapshot {commit.hash[:SHORT]}", facts=facts, parts=parts)


def versioned_page(state: Versioned) -> Page:
    """Show a versioned state: its variables, its cache, its files, its last commits."""
    at = "no commits" if state.head is None else f"at {state.head[:SHORT]}"
    parts = [*_held(state, state.cache, state.files)]
    commits = state.history()[: COMMITS + 1]
    if commits:
        note = "older ones: state.history()" if len(commits) > COMMITS else ""
        rows = commit_rows(commits[:COMMITS], names_of(state))
        parts.append(Table(head=COMMIT_HEAD, rows=rows, label="commits", note=note))
    return Page(title=f"Versioned · {state.branch}", facts=(at, *_counts(state)), parts=parts)


def names_of(state: Versioned) -> dict[str, list[str]]:
    """Give the branches and tags on each commit."""
    names: dict[str, list[str]] = {}
    for kind, found in (("", state.branches()), ("tag ", state.tags())):
        for name, commit in found.items():
            names.setdefault(commit, []).append(f"{kind}{name}")
    return names


def _counts(held: Mapping[str, Any]) -> tuple[str, ...]:
    return (f"{len(held):,} variable{'' if len(held) == 1 else 's'}",)


def _held(
    held: Live | Versioned | Snapshot, cache: Mapping[str, Any], files: Iterable[str]
) -> Iterator[Part]:
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
    """Give what a cache holds, its keys as text: agents may use keys of any class."""
    for key, value in cache.items():
        yield values.show_value(key) or f"<{values.type_name(key)}>", value


def _variable(held: Live | Versioned | Snapshot, name: str) -> tuple[str, str, str]:
    try:
        return _described(name, held.sketch(name))
    except Unreadable:
        return name, "", UNREADABLE
    except UnpicklableVariableError:
        return name, "", NOT_KEPT


def _described(name: str, value: Any) -> tuple[str, str, str]:
    return name, values.type_name(value), values.show_value(value) or ""
