"""``agex log``, ``show``, ``diff``, ``fork``, ``fsck``, ``gc``: the history in a directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.syntax import Syntax

from agex import Disk, Versioned
from agex.agent.past import compare, fork, log, show
from agex.display import plain
from agex.errors import StateError

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


def collect(state: Versioned) -> dict[str, Any]:
    """Drop what nothing reaches."""
    gone = state.gc()
    return {"commits": gone.commits, "chunks": gone.chunks, "bytes": gone.bytes}


def _told(text: str) -> str:
    """Return text for rich: neither it nor the terminal takes orders from it."""
    return escape(plain(text))
