"""``agex shell``: a terminal for people over the files of a state."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from agex.files import VirtualFiles, Workspace
from agex.sandbox import Sandbox
from agex.shell import Terminal, python_command

if TYPE_CHECKING:
    from agex.sandbox import Result
    from agex.state import Versioned

__all__ = ["lines_of", "run_script", "terminal_over", "work"]


def terminal_over(state: Versioned) -> Terminal:
    """Return a terminal over the files of a state, with ``python`` in a sandbox on them."""
    workspace = Workspace(VirtualFiles(state.files))
    session = Sandbox(fs=workspace).session()

    def run(source: str, filename: str, args: list[str]) -> Result:
        return session.define(source, filename, {}, main=True)

    return Terminal(workspace.files, {"python": python_command(run), "python3": python_command(run)})


def run_script(state: Versioned, terminal: Terminal, script: str) -> dict[str, Any]:
    """Run one script and commit what it changed."""
    transcript = terminal.run(script)
    changed = state.files.is_changed
    commit = state.commit(f"shell: {script.strip().splitlines()[0][:60]}") if changed else None
    return {
        "text": transcript.text,
        "failed": transcript.failed,
        "exit_code": transcript.exit_code,
        "commit": commit,
    }


def work(state: Versioned, lines: Iterator[str], show: Callable[[dict[str, Any]], object]) -> int:
    """Run scripts one by one; return the exit code of the last."""
    terminal = terminal_over(state)
    code = 0
    for line in lines:
        if line.strip():
            result = run_script(state, terminal, line)
            code = result["exit_code"]
            show(result)
    return code


def _until_exit(script: str) -> str:
    """Return the lines of a script up to one that says ``exit``."""
    lines = script.splitlines(keepends=True)
    end = next((number for number, line in enumerate(lines) if line.strip() in ("exit", "quit")), len(lines))
    return "".join(lines[:end])


def lines_of(prompt: str) -> Iterator[str]:
    """Yield the typed lines until ``exit``; or the whole piped input at once."""
    if not sys.stdin.isatty():
        yield _until_exit(sys.stdin.read())
        return
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while (line := input(prompt)).strip() not in ("exit", "quit"):
            yield line
