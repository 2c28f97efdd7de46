"""``agex log``, ``show``, ``diff``, ``fork``, ``branch``, ``backup``, ``fsck``, ``gc``: histories on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.syntax import Syntax

from agex import Disk, Versioned
from agex.agent.views.state_history import compare, fork, log, show
from agex.display import plain
from agex.errors import StateError
from agex.state.commits.branches import is_conflict
from agex.state.commits.history import when

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "back_up", "branches", "check", "collect", "compare", "delete", "fork", "length_of_time", "log", "opened",
    "print_branches", "print_commit", "print_log", "show",
]  # fmt: skip

SHORT = 10
"""Characters of a hash that are shown."""
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@contextmanager
def opened(directory: Path, branch: str | None = None, *, without: str | None = None) -> Iterator[Versioned]:
    """Open the state in a directory that has one.

    Args:
        directory: of a Disk store.
        branch: to stand on; any that there is, if not given.
        without: a branch not to stand on.

    Raises:
        StateError: there is none; a typing mistake must not make one.
    """
    if not (directory / "state.db").is_file():
        raise StateError(f"{directory} holds no state; give the directory of a Disk store")
    store = Disk(directory)
    try:
        there = store.journal().branches()
        if branch not in (None, "main") and without is None and not there:
            raise StateError(f"There is no branch {branch!r} in {directory}; there is none yet.")
        if branch is None:
            names = [name for name in store.journal().branches() if name != without] or ["main"]
            branch = "main" if "main" in names else names[0]
        yield Versioned(store, branch=branch, create=without is not None)
    finally:
        store.close()


def branches(state: Versioned) -> list[dict[str, Any]]:
    """Describe the branches, those of conflicts last."""
    found = [
        {
            "branch": name,
            "head": head,
            "time": state.history(head)[0].time,
            "conflict": is_conflict(name),
        }
        for name, head in state.branches().items()
    ]
    return sorted(found, key=lambda entry: (entry["conflict"], entry["branch"]))


def print_branches(entries: list[dict[str, Any]], console: Console) -> None:
    """Print branches, a line each."""
    for entry in entries:
        kind = "  [dim]of a conflict[/]" if entry["conflict"] else ""
        console.print(
            f"[yellow]{entry['head'][:SHORT]}[/] {when(entry['time'])}  "
            f"[green]{_told(entry['branch'])}[/]{kind}",
            highlight=False,
            soft_wrap=True,
        )


def delete(directory: Path, name: str) -> dict[str, Any]:
    """Delete a branch."""
    with opened(directory, without=name) as state:
        head = state.branches().get(name)
        state.delete_branch(name)
    return {"branch": name, "head": head}


def back_up(directory: Path, out: Path) -> dict[str, Any]:
    """Copy a store."""
    with opened(directory) as state:
        state.backup(out)
        return {"backup": str(out), "branches": state.branches()}


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
        agent = f"[cyan]{_told(entry['agent'])}[/] " if entry["agent"] else ""
        console.print(
            f"[yellow]{entry['hash'][:SHORT]}[/]{names} {entry['time'][:19]} UTC "
            f"{agent}{_told(entry['message'])}[dim]{tokens}  {_told(changed)}[/]",
            highlight=False,
            soft_wrap=True,
        )


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


def check(state: Versioned) -> dict[str, Any]:
    """Check the whole store."""
    problems = state.fsck()
    return {"ok": not problems, "problems": problems}


def collect(state: Versioned, conflicts_older_than: timedelta | None = None) -> dict[str, Any]:
    """Drop unreachable commits."""
    gone = state.gc(conflicts_older_than)
    return {"branches": gone.branches, "commits": gone.commits, "chunks": gone.chunks, "bytes": gone.bytes}


def length_of_time(text: str) -> timedelta:
    """Return the length of time that a text names: ``90s``, ``12h``, ``30d``; without a letter, seconds.

    Raises:
        ValueError: it says none.
    """
    match = re.fullmatch(r"(\d{1,6})([smhdw]?)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no length of time; write 90s, 12h or 30d")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def _told(text: str) -> str:
    """Return text escaped for rich and for the terminal."""
    return escape(plain(text))
