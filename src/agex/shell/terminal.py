"""Shell scripts over a file system, with their output and whether they failed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

from termish import CommandContext, CommandResult, MemoryFS, ParseError, TerminalError, execute

__all__ = ["Command", "Terminal", "TerminalCommand", "Transcript", "is_usual"]

Command = Callable[[CommandContext], CommandResult | None]


def is_usual(name: str) -> bool:
    """Return whether a terminal has a command of its own accord."""
    return name in {"python", "python3"} or not Terminal(MemoryFS()).run(f"command -v {name}").failed


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """The output of a script."""

    text: str
    failed: bool = False
    """Whether its last command failed."""
    exit_code: int = 0


class Terminal:
    """A shell: it has a working directory and variables from script to script.

    Args:
        files: the file system, of the protocol of termish.
        commands: commands beside those of termish; one of the same name replaces it.
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


@dataclass(frozen=True, kw_only=True)
class TerminalCommand:
    """A host function as a command of the terminal."""

    name: str
    handler: Callable[[CommandContext], Any]
    """Called with the context: ``args``, ``stdin``, ``stdout``, ``fs``, ``env``. It returns None, a text to
    print, an exit code, or a ``CommandResult``; what it raises is the command's error."""
    visibility: Literal["high", "medium", "low"] = "medium"
    docstring: str | None = None
    """Replaces the handler's own."""

    @property
    def doc(self) -> str:
        """The description of the command."""
        own = inspect.getdoc(self.handler) if self.docstring is None else inspect.cleandoc(self.docstring)
        return own or ""

    def run(self, context: CommandContext, host: Callable[[], AbstractContextManager[None]]) -> CommandResult:
        """Carry it out; *host* is entered for the time that the host's own function works."""
        if context.args in (["--help"], ["-h"]):
            context.stdout.write(f"{self.doc or f'{self.name}: no description'}\n")
            return CommandResult()
        with host():
            answer = self.handler(context)
        if isinstance(answer, CommandResult):
            return answer
        if isinstance(answer, str):
            context.stdout.write(answer if answer.endswith("\n") or not answer else f"{answer}\n")
            return CommandResult()
        return CommandResult(exit_code=int(answer or 0))
