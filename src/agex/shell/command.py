"""A command that the host adds to the terminal."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

from termish import CommandContext, CommandResult

__all__ = ["TerminalCommand"]


@dataclass(frozen=True, kw_only=True)
class TerminalCommand:
    """A function of the host as a command."""

    name: str
    handler: Callable[[CommandContext], Any]
    """Called with the context: ``args``, ``stdin``, ``stdout``, ``fs``, ``env``. It returns None, a text to
    print, an exit code, or a ``CommandResult``; what it raises is the command's error."""
    visibility: Literal["high", "medium", "low"] = "medium"
    docstring: str | None = None
    """Replaces the handler's own."""

    @property
    def doc(self) -> str:
        """What it is for."""
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
