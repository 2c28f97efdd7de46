"""Shell scripts over a file system, with their output and whether they failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from termish import CommandContext, CommandResult, ParseError, TerminalError, execute

__all__ = ["Command", "Terminal", "Transcript"]

Command = Callable[[CommandContext], CommandResult | None]


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """What a script showed."""

    text: str
    failed: bool = False
    """Whether its last command failed."""
    exit_code: int = 0


class Terminal:
    """A shell: it has a working directory and variables from script to script.

    Args:
        files: the file system, of the protocol of termish.
        commands: what there is beside the commands of termish; a name of theirs is replaced.
    """

    def __init__(self, files: Any, commands: Mapping[str, Command] | None = None) -> None:
        self._files = files
        self._commands = dict(commands or {})
        self._env = {"HOME": "/", "USER": "agent", "SHELL": "sh"}

    def run(self, script: str) -> Transcript:
        """Run a script; a line that fails does not stop those after it, as in a shell."""
        try:
            text = execute(script, self._files, commands=self._commands, env=self._env)
        except TerminalError as error:
            said = error.message if error.stderr is None else error.stderr
            shown = "\n".join(part.rstrip("\n") for part in (error.partial_output, said) if part)
            silent = f"(exit code {error.exit_code})"
            return Transcript(text=shown or silent, failed=True, exit_code=error.exit_code)
        except ParseError as error:
            return Transcript(text=f"syntax error: {error}", failed=True, exit_code=2)
        return Transcript(text=text)
