"""``agex log``, ``show``, ``diff``, ``fork``, ``fsck``, ``gc``: the history in a directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.syntax import Syntax

from agex import Disk, Versioned
from agex.agent import ActionEvent, OutputEvent
from agex.errors import StateError, UnpicklableVariableError
from agex.models.actions import PythonAction
from agex.state import Snapshot
from agex.studio.past import changed, compare, fork, log, summary
from agex.values import show_value

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


def print_log(entries: list[dict[str, Any]], console: Console) -> None:
    """Print a log, a line a commit."""
    for entry in entries:
        names = f" [green]({escape(', '.join(entry['names']))})[/]" if entry["names"] else ""
        changed = " ".join(
            f"{sign}{name}"
            for kind in ("changed", "files")
            for sign, found in entry[kind].items()
            for name in found
        )
        tokens = f"  {entry['tokens']} tokens" if entry["tokens"] else ""
        console.print(
            f"[yellow]{entry['hash'][:SHORT]}[/]{names} {entry['time'][:19]} "
            f"{escape(entry['message'])}[dim]{tokens}  {escape(changed)}[/]",
            highlight=False,
            soft_wrap=True,
        )


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


def print_commit(entry: dict[str, Any], console: Console) -> None:
    """Print one commit."""
    console.print(f"[yellow]commit {entry['hash']}[/]")
    console.print(f"{entry['time']}  {escape(entry['message'])}\n", highlight=False)
    for step in entry["steps"]:
        if step["kind"] == "code":
            console.print(Syntax(step["text"], "python", background_color="default"))
        else:
            console.print(escape(step["text"]), style="red" if step["kind"] == "error" else "dim")
    if entry["file_changes"]:
        console.print(escape(entry["file_changes"]), highlight=False)
    for name, text in entry["variables"].items():
        console.print(f"  [bold]{escape(name)}[/] = {escape(text)}", highlight=False)


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
    return show_value(value) or type(value).__name__


def _steps(event: Any) -> Iterator[dict[str, str]]:
    if isinstance(event, ActionEvent):
        for action in event.actions:
            yield {"kind": "code" if isinstance(action, PythonAction) else action.kind, "text": _text(action)}
    elif isinstance(event, OutputEvent) and event.text:
        yield {"kind": "error" if event.error else "output", "text": event.text}


def _text(action: Any) -> str:
    return action.code if isinstance(action, PythonAction) else str(action)
