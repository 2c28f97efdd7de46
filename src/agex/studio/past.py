"""Commits as plain JSON: what a history lists, what one commit did, what differs between two."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agex.agent import ActionEvent
from agex.state import Commit, Diff, Versioned

__all__ = ["changed", "compare", "entry", "fork", "log", "names_of", "summary"]


def log(state: Versioned, limit: int, ref: str | None = None) -> list[dict[str, Any]]:
    """Describe the newest commits up to the head, or to *ref*, a dict each."""
    names = names_of(state)
    return [entry(state, commit, names) for commit in itertools.islice(state.history(ref), limit)]


def entry(state: Versioned, commit: Commit, names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Describe a commit as a log does; *names* are what `names_of` gives."""
    return {**summary(commit), "names": names.get(commit.hash, []), **changed(state, commit)}


def names_of(state: Versioned) -> dict[str, list[str]]:
    """Return the branches and tags that commits have, by hash."""
    names: dict[str, list[str]] = {}
    for kind, found in (("", state.branches()), ("tag ", state.tags())):
        for name, commit in found.items():
            names.setdefault(commit, []).append(f"{kind}{name}")
    return names


def summary(commit: Commit) -> dict[str, Any]:
    """Describe a commit in a few words and numbers."""
    actions = [event for event in commit.events if isinstance(event, ActionEvent)]
    return {
        "hash": commit.hash,
        "parent": commit.parent,
        "time": datetime.fromtimestamp(commit.time, UTC).isoformat(),
        "message": commit.message,
        "task": next((event.task for event in reversed(commit.events)), None),
        "turn": max((event.turn for event in commit.events), default=None),
        "tokens": sum(event.usage.input_tokens + event.usage.output_tokens for event in actions),
    }


def changed(state: Versioned, commit: Commit) -> dict[str, dict[str, list[str]]]:
    """Name the variables and files that a commit added, removed and changed."""
    diff = state.diff(commit.parent, commit.hash, texts=False)
    return {"changed": _named(diff), "files": _named(diff.files or Diff({}, {}, {}))}


def compare(state: Versioned, old: str | None, new: str) -> dict[str, Any]:
    """Describe what differs between two commits; None is the empty state."""
    found = state.diff(old, new)
    return {**_parts(found), "files": _parts(found.files), "text": str(found)}


def fork(state: Versioned, name: str | None, at: str | None) -> dict[str, Any]:
    """Make a branch."""
    made = state.fork(name, at=at)
    return {"branch": made.branch, "head": made.head}


def _parts(diff: Diff | None) -> dict[str, dict[str, str]]:
    """Return a difference as its three dicts of texts by name."""
    found = diff or Diff({}, {}, {})
    return {"added": found.added, "removed": found.removed, "changed": found.changed}


def _named(diff: Diff) -> dict[str, list[str]]:
    return {"+": sorted(diff.added), "-": sorted(diff.removed), "~": sorted(diff.changed)}
