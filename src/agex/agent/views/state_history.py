"""A state's history as plain data: what a log, a timeline and a difference show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from agex.agent.call.events import ActionEvent, OutputEvent
from agex.errors import UnpicklableVariableError
from agex.models.actions import PythonAction
from agex.state import Commit, Diff, Snapshot, Versioned
from agex.state.tables import names_of
from agex.values import show_value, type_name

__all__ = ["changed", "compare", "entry", "fork", "log", "show", "summary"]


def log(state: Versioned, limit: int, ref: str | None = None) -> list[dict[str, Any]]:
    """Describe the newest commits up to the head, or to *ref*, a dict each."""
    names = names_of(state)
    return [entry(state, commit, names) for commit in state.history(ref)[:limit]]


def entry(state: Versioned, commit: Commit, names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Describe a commit as a log does; *names* are what `names_of` gives."""
    return {**summary(commit), "names": names.get(commit.hash, []), **changed(state, commit)}


def summary(commit: Commit) -> dict[str, Any]:
    """Describe a commit in a few words and numbers."""
    actions = [event for event in commit.events if isinstance(event, ActionEvent)]
    return {
        "hash": commit.hash,
        "parent": commit.parent,
        "time": datetime.fromtimestamp(commit.time, UTC).isoformat(),
        "message": commit.message,
        "agent": next((event.agent for event in reversed(commit.events)), None),
        "task": next((event.task for event in reversed(commit.events)), None),
        "turn": max((event.turn for event in commit.events), default=None),
        "tokens": sum(event.usage.input_tokens + event.usage.output_tokens for event in actions),
    }


def changed(state: Versioned, commit: Commit) -> dict[str, dict[str, list[str]]]:
    """Name the variables and files that a commit added, removed and changed."""
    diff = state.diff(commit.parent, commit.hash, texts=False)
    return {"changed": _named(diff), "files": _named(diff.files or Diff({}, {}, {}))}


def show(state: Versioned, ref: str) -> dict[str, Any]:
    """Describe one commit: its code and output, what it did to files, and the variables that it left."""
    snapshot = state.checkout(ref)
    commit = snapshot.commit
    return {
        **summary(commit),
        "steps": [step for event in commit.events for step in _steps(event)],
        **changed(state, commit),
        "file_changes": str(state.diff(commit.parent, commit.hash).files or ""),
        "variables": {name: _shown(snapshot, name) for name in snapshot},
    }


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


def _shown(snapshot: Snapshot, name: str) -> str:
    try:
        value = snapshot[name]
    except UnpicklableVariableError:
        return "(not kept)"
    return show_value(value) or type_name(value)


def _steps(event: Any) -> Iterator[dict[str, str]]:
    if isinstance(event, ActionEvent):
        for action in event.actions:
            yield {"kind": "code" if isinstance(action, PythonAction) else action.kind, "text": _text(action)}
    elif isinstance(event, OutputEvent) and event.text:
        yield {"kind": "error" if event.error else "output", "text": event.text}


def _text(action: Any) -> str:
    return action.code if isinstance(action, PythonAction) else str(action)
