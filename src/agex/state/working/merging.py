"""The difference between two commits, and the part of it that a merge takes."""

from __future__ import annotations

import difflib
from collections import deque
from collections.abc import Mapping
from typing import Any

from agex import values
from agex.errors import StateConflict
from agex.state.commits.history import Diff
from agex.state.commits.journal import Journal
from agex.state.working.stored_variables import CACHE, Codec, Stored, Unreadable, is_import, members, name_of
from agex.state.working.tracked_files import FileSpace, content_of, entry_of, path_of, same_content
from agex.state.working.working_copy import Mark

__all__ = ["difference", "files_to_take", "marks_between", "merge_base", "take_files", "to_take"]

SMALL = 64 * 1024
"""Bytes of a value that is shown in a difference."""


def difference(journal: Journal, codec: Codec, old: str | None, new: str, *, texts: bool) -> Diff:
    """Compare two commits; None is the empty state."""
    touched = journal.diff(old, new)
    diff = Diff({}, {}, {}, _files(journal, touched, texts=texts))
    before, after = (None if one is None else Stored(journal, one, codec) for one in (old, new))
    for name in sorted(name for name in _names(touched) if not is_import(name)):
        was, now = _found(before, name), _found(after, name)
        part = diff.added if was is None else diff.removed if now is None else diff.changed
        if was is now is None:
            continue
        part[name] = _text(_small(before, was, name), _small(after, now, name)) if texts else ""
    return diff


_Touched = Mapping[str, tuple[bytes | None, bytes | None]]


def _files(journal: Journal, touched: _Touched, *, texts: bool) -> Diff:
    """Compare the files among the keys that differ."""
    diff = Diff({}, {}, {})
    for key, (was, now) in sorted(touched.items()):
        path = path_of(key)
        if path is None or path.endswith("/") or same_content(was, now):
            continue
        part = diff.added if was is None else diff.removed if now is None else diff.changed
        part[path] = _lines(journal, path, was, now) if texts else ""
    return diff


def _lines(journal: Journal, path: str, was: bytes | None, now: bytes | None) -> str:
    """Return how a text differs, as a unified diff; empty for what is large or no text."""
    sides = []
    for payload in (was, now):
        if payload is not None and entry_of(path, payload).size > SMALL:
            return ""
        content = b"" if payload is None else content_of(journal, path, payload)
        if b"\0" in content:
            return ""
        sides.append(content.decode("utf-8", "replace").splitlines())
    old, new = sides
    return "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=2))[2:])


def files_to_take(journal: Journal, base: str | None, mine: str, theirs: str) -> list[str]:
    """Return the paths at which a merge takes over what the other side has, or has no more.

    Raises:
        StateConflict: both sides changed the same file.
    """
    ours, others = (_paths(journal.diff(base, side)) for side in (mine, theirs))
    differing = others & _paths(journal.diff(mine, theirs))
    both = sorted(ours & differing)
    if both:
        raise StateConflict(
            f"Both sides changed {', '.join(both)}; nothing was merged. Make these files the same on one "
            "side, commit, and merge again."
        )
    return sorted(differing)


def marks_between(journal: Journal, old: str | None, new: str) -> set[Mark]:
    """Return the marks of variables and cache that differ, by their keys in the journal."""
    return {(name,) for name in _touched(journal, old, new)}


def take_files(mine: FileSpace, theirs: FileSpace, paths: list[str]) -> None:
    """Make files what they are on the other side."""
    for path in paths:
        entry = theirs.entries.get(path)
        if entry is not None:
            mine.put(path, theirs[path], created=entry.created, modified=entry.modified)
        elif path in mine.entries:
            del mine[path]


def _paths(touched: _Touched) -> set[str]:
    found = {path: payloads for key, payloads in touched.items() if (path := path_of(key)) is not None}
    return {path for path, payloads in found.items() if not same_content(*payloads)}


def _touched(journal: Journal, old: str | None, new: str) -> set[str]:
    return _names(journal.diff(old, new))


def _names(touched: _Touched) -> set[str]:
    """Return the names that may differ: those whose key changed, and those kept together with them."""
    names: set[str] = set()
    for key, payloads in touched.items():
        name = name_of(key)
        if name is not None:
            names.add(name)
            for payload in payloads:
                names.update(members(payload))
    return names


def _found(stored: Stored | None, name: str) -> values.Recipe | None:
    return None if stored is None else stored.recipe(name)


def _small(stored: Stored | None, recipe: values.Recipe | None, name: str) -> list[Any] | None:
    """Return the value in a list, an empty one where there is none; None for one that is not shown.

    It is too large, or cannot be read.
    """
    if stored is None or recipe is None:
        return []
    try:
        return [stored.group(name, recipe)[1][name]] if recipe.size <= SMALL else None
    except Unreadable:
        return None


def _text(was: list[Any] | None, now: list[Any] | None) -> str:
    if was is None or now is None:
        return ""
    if was and now:
        return values.diff_values(was[0], now[0]) or ""
    return values.show_value((was or now)[0]) or ""


def merge_base(journal: Journal, mine: str, theirs: str) -> str | None:
    """Return the newest commit that two commits both stand on; None where they share none."""
    known = {mine}
    behind = deque([mine])
    while behind:
        new = set(journal.record(behind.popleft()).parents) - known
        known |= new
        behind.extend(new)
    seen = {theirs}
    behind = deque([theirs])
    while behind:
        commit = behind.popleft()
        if commit in known:
            return commit
        new = set(journal.record(commit).parents) - seen
        seen |= new
        behind.extend(sorted(new))
    return None


def to_take(journal: Journal, base: str | None, mine: str, theirs: str) -> tuple[list[str], list[str]]:
    """Return the names whose value, and those whose absence, a merge takes over.

    Raises:
        StateConflict: both sides changed the same one.
    """
    ours, others = _touched(journal, base, mine), _touched(journal, base, theirs)
    here, there = (Stored(journal, commit, Codec(values.Allow())) for commit in (mine, theirs))
    differing = {name for name in others if here.home(name) != there.home(name)}
    both = sorted(ours & differing)
    if both:
        raise StateConflict(
            f"Both sides changed {', '.join(both)}; nothing was merged. Set them to the same values on one "
            "side, commit, and merge again."
        )
    taken = sorted(name for name in differing if there.home(name) is not None)
    return taken, sorted(differing - set(taken) - {CACHE})
