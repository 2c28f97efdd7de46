"""What differs between two commits, and what a merge takes."""

from __future__ import annotations

from collections import deque
from typing import Any

from agex import values
from agex.errors import StateConflict
from agex.state.history import Diff
from agex.state.journal import Journal
from agex.state.variables import CACHE, Codec, Stored, members, name_of

__all__ = ["difference", "merge_base", "to_take"]

SMALL = 64 * 1024
"""Bytes of a value that is shown in a difference."""


def difference(journal: Journal, codec: Codec, old: str | None, new: str, *, texts: bool) -> Diff:
    """Compare the variables of two commits; None is the empty state."""
    diff = Diff({}, {}, {})
    before, after = (None if one is None else Stored(journal, one, codec) for one in (old, new))
    for name in sorted(_touched(journal, old, new)):
        was, now = _found(before, name), _found(after, name)
        part = diff.added if was is None else diff.removed if now is None else diff.changed
        if was is now is None:
            continue
        part[name] = _text(_small(before, was, name), _small(after, now, name)) if texts else ""
    return diff


def _touched(journal: Journal, old: str | None, new: str) -> set[str]:
    """Return the names that may differ: those whose key changed, and those kept together with them."""
    names: set[str] = set()
    for key, payloads in journal.diff(old, new).items():
        name = name_of(key)
        if name is not None:
            names.add(name)
            for payload in payloads:
                names.update(members(payload))
    return names


def _found(stored: Stored | None, name: str) -> values.Recipe | None:
    return None if stored is None else stored.recipe(name)


def _small(stored: Stored | None, recipe: values.Recipe | None, name: str) -> list[Any] | None:
    """Return the value in a list, an empty one where there is none; None for one too large to show."""
    if stored is None or recipe is None:
        return []
    return [stored.group(recipe)[1][name]] if recipe.size <= SMALL else None


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
