"""``agex log``, ``show``, ``diff``, ``fork``, ``fsck``, ``gc``: the history in a directory."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.syntax import Syntax

from agex import Disk, Versioned
from agex.agent import ActionEvent, OutputEvent
from agex.display import plain
from agex.errors import StateError, UnpicklableVariableError
from agex.models.actions import PythonAction
from agex.state import Commit, Diff, Snapshot
from agex.values import show_value, type_name

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["check", "collect", "compare", "fork", "log", "opened", "print_commit", "print_log", "show"]

SHORT = 10
"""Characters of a hash that are shown."""


@contextmanager
def opened(directory: Path, branch: str = "main") -> Iterator[Versioned]:
    """Open the state in a directory that has one.

    Raises:
        StateError: there is none; a typing mistake must not make one.
    """
    if not (directory / "state.db").is_file():
        raise StateError(f"{directory} holds no state; give the directory of a Disk store")
    state = Versioned(Disk(directory), branch=branch)
    try:
        yield state
    finally:
        state.close()


def log(state: Versioned, limit: int) -> list[dict[str, Any]]:
    """Describe the newest commits, a dict each."""
    names: dict[str, list[str]] = {}
    for kind, found in (("", state.branches()), ("tag ", state.tags())):
        for name, commit in found.items():
            names.setdefault(commit, []).append(f"{kind}{name}")
    return [
        {**_summary(commit), "names": names.get(commit.hash, []), **_changed(_change(state, commit))}
        for commit in itertools.islice(state.history(), limit)
    ]


def print_log(entries: list[dict[str, Any]], console: Console) -> None:
    """Print a log, a line a commit."""
    for entry in entries:
        names = f" [green]({_told(', '.join(entry['names']))})[/]" if entry["names"] else ""
        changed = " ".join(
            f"{sign}{name}"
            for kind in ("changed", "files")
            for sign, found in entry[kind].items()
            for name in found
        )
        tokens = f"  {entry['tokens']} tokens" if entry["tokens"] else ""
        console.print(
            f"[yellow]{entry['hash'][:SHORT]}[/]{names} {entry['time'][:19]} "
            f"{_told(entry['message'])}[dim]{tokens}  {_told(changed)}[/]",
            highlight=False,
            soft_wrap=True,
        )


def show(state: Versioned, ref: str) -> dict[str, Any]:
    """Describe one commit: its code and output, what it did to files, and the variables that it left."""
    snapshot = state.checkout(ref)
    commit = snapshot.commit
    return {
        **_summary(commit),
        "steps": [step for event in commit.events for step in _steps(event)],
        **_changed(_change(state, commit)),
        "file_changes": str(state.diff(commit.parent, commit.hash).files or ""),
        "variables": {name: _shown(snapshot, name) for name in snapshot},
    }


def print_commit(entry: dict[str, Any], console: Console) -> None:
    """Print one commit."""
    console.print(f"[yellow]commit {entry['hash']}[/]")
    console.print(f"{entry['time']}  {_told(entry['message'])}\n", highlight=False)
    for step in entry["steps"]:
        if step["kind"] == "code":
            console.print(Syntax(plain(step["text"]), "python", background_color="default"))
        else:
            console.print(_told(step["text"]), style="red" if step["kind"] == "error" else "dim")
    if entry["file_changes"]:
        console.print(_told(entry["file_changes"]), highlight=False)
    for name, text in entry["variables"].items():
        console.print(f"  [bold]{_told(name)}[/] = {_told(text)}", highlight=False)


def compare(state: Versioned, old: str, new: str) -> dict[str, Any]:
    """Describe what differs between two commits."""
    found = state.diff(old, new)
    return {**_parts(found), "files": _parts(found.files), "text": str(found)}


def fork(state: Versioned, name: str | None, at: str | None) -> dict[str, Any]:
    """Make a branch."""
    made = state.fork(name, at=at)
    return {"branch": made.branch, "head": made.head}


def check(state: Versioned) -> dict[str, Any]:
    """Check the whole store."""
    problems = state.fsck()
    return {"ok": not problems, "problems": problems}


def collect(state: Versioned) -> dict[str, Any]:
    """Drop what nothing reaches."""
    gone = state.gc()
    return {"commits": gone.commits, "chunks": gone.chunks, "bytes": gone.bytes}


def _shown(snapshot: Snapshot, name: str) -> str:
    try:
        value = snapshot[name]
    except UnpicklableVariableError:
        return "(not kept)"
    return show_value(value) or type_name(value)


def _summary(commit: Commit) -> dict[str, Any]:
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


def _change(state: Versioned, commit: Commit) -> Diff:
    return state.diff(commit.parent, commit.hash, texts=False)


def _parts(diff: Diff | None) -> dict[str, dict[str, str]]:
    found = diff or Diff({}, {}, {})
    return {"added": found.added, "removed": found.removed, "changed": found.changed}


def _changed(diff: Diff) -> dict[str, dict[str, list[str]]]:
    return {"changed": _named(diff), "files": _named(diff.files or Diff({}, {}, {}))}


def _named(diff: Diff) -> dict[str, list[str]]:
    return {"+": sorted(diff.added), "-": sorted(diff.removed), "~": sorted(diff.changed)}


def _steps(event: Any) -> Iterator[dict[str, str]]:
    if isinstance(event, ActionEvent):
        for action in event.actions:
            yield {"kind": "code" if isinstance(action, PythonAction) else action.kind, "text": _text(action)}
    elif isinstance(event, OutputEvent) and event.text:
        yield {"kind": "error" if event.error else "output", "text": event.text}


def _text(action: Any) -> str:
    return action.code if isinstance(action, PythonAction) else str(action)


def _told(text: str) -> str:
    """Return text for rich: neither it nor the terminal takes orders from it."""
    return escape(plain(text))
