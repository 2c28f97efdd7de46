"""The terminal of guest code: over its own files, with ``python`` under its own guards."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from termish import CommandContext, CommandResult

from agex.shell.terminal import Command, Terminal
from agex.shell.test_runners import RUNNERS, program

__all__ = ["guest_terminal", "python_command"]

_USAGE = """\
usage: python FILE [ARG ...] | python -c CODE [ARG ...] | python -m MODULE [ARG ...] | python < FILE
Runs Python in the sandbox, on the files of the workspace, with names of its own."""


class Ran(Protocol):
    """The result of a program."""

    @property
    def stdout(self) -> str: ...

    @property
    def traceback(self) -> str: ...

    @property
    def error(self) -> Exception | None: ...


Run = Callable[[str, str, list[str]], Ran]
"""Runs source under a file name, with arguments."""


class _Session(Protocol):
    """The part of `agex.sandbox.Session` that a terminal uses."""

    @property
    def guest_files(self) -> Any: ...

    def imported(self, name: str, /) -> Any: ...

    def define(
        self, source: str, filename: str, namespace: dict[str, Any], /, *, main: bool = False
    ) -> Ran: ...


def guest_terminal(session: _Session, commands: Mapping[str, Command]) -> Terminal:
    """Return a terminal over the files of a session; its scripts are to be run under the session's limits.

    Args:
        session: which has files.
        commands: of the host, by name; one may take the place of ``python``.
    """
    python = python_command(partial(_run_python, session))
    return Terminal(session.guest_files, {"python": python, "python3": python, **commands})


def _run_python(session: _Session, source: str, filename: str, args: list[str]) -> Ran:
    system = vars(session.imported("sys"))
    before = system.get("argv")
    system["argv"] = args
    try:
        return session.define(source, posixpath.normpath(filename), {}, main=True)
    finally:
        system.pop("argv") if before is None else system.update(argv=before)


def python_command(run: Run) -> Command:
    """Make the command; *run* carries a program out."""

    def python(context: CommandContext) -> CommandResult:
        """Run Python in the sandbox."""
        if context.args[:1] in (["--help"], ["-h"]):
            context.stdout.write(_USAGE + "\n")
            return CommandResult()
        program = _program(context)
        if isinstance(program, CommandResult):
            return program
        ran = run(*program)
        context.stdout.write(ran.stdout)
        ending = None if ran.error is None else ran.error.__cause__
        if isinstance(ending, SystemExit):  # it said a status itself
            is_status = isinstance(ending.code, int)
            return CommandResult(
                exit_code=int(str(ending.code)) & 255 if is_status else 1,
                stderr="" if is_status else f"{ending.code}\n",
            )
        return CommandResult(exit_code=0 if ran.error is None else 1, stderr=ran.traceback)

    return python


def _program(context: CommandContext) -> tuple[str, str, list[str]] | CommandResult:
    """Return the source, its file name and ``sys.argv``; or what is wrong with the call."""
    args = list(context.args)
    if not args or args[0] == "-":
        return context.stdin.read(), "<stdin>", ["-", *args[1:]]
    if args[0] in ("-c", "-m") and len(args) == 1:
        return CommandResult(exit_code=2, stderr=f"python: {args[0]} needs an argument\n{_USAGE}")
    if args[0] == "-c":
        return args[1], "<command>", ["-c", *args[2:]]  # not "<string>", as programs of exec() are called
    if args[0] == "-m" and args[1] in RUNNERS and not context.fs.isfile(f"{args[1]}.py"):
        return program(args[1], args[2:], context.fs), f"<{args[1]}>", [args[1], *args[2:]]
    if args[0] == "-m":
        return _file(context, args[1].replace(".", "/") + ".py", args[2:])
    if args[0].startswith("-"):
        return CommandResult(exit_code=2, stderr=f"python: unknown option {args[0]}\n{_USAGE}")
    return _file(context, args[0], args[1:])


def _file(context: CommandContext, path: str, args: list[str]) -> tuple[str, str, list[str]] | CommandResult:
    if not context.fs.isfile(path):
        return CommandResult(
            exit_code=2, stderr=f"python: can't open file '{path}': No such file or directory"
        )
    # As the frames of an imported module name their file.
    shown = posixpath.normpath(posixpath.join(context.fs.getcwd(), path))
    return context.fs.read(path).decode("utf-8-sig", "replace"), shown, [path, *args]
