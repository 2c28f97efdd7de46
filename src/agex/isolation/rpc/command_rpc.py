"""Host commands for a terminal in a worker: the shell runs there, host functions run here.

A script runs in the worker, which can be killed. It asks for a host command by name, with plain values as
arguments, and only while a script runs.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from termish import CommandContext, CommandResult

from agex.isolation.rpc.host_proxies import Asker
from agex.isolation.wire.error_codec import ProtocolError
from agex.shell import Transcript
from agex.shell.terminal import TerminalCommand

__all__ = ["CommandRequests", "asking", "read_transcript", "told_transcript"]


class CommandRequests:
    """Carries out the host commands that a script in a worker calls.

    Args:
        commands: by name.
        files: of the task, as guest code has them.
        host: a context that is entered while a host function works.
    """

    def __init__(
        self,
        commands: Mapping[str, TerminalCommand],
        files: Any,
        host: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._commands = commands
        self._files = files
        self._host = host

    def work(self, name: Any) -> Callable[..., Any]:
        """Return the function that carries out a command.

        Raises:
            ProtocolError: no script was given such a command.
        """
        command = self._commands.get(name) if type(name) is str else None
        if command is None:
            raise ProtocolError(f"the worker asks for the command {str(name)[:80]!r}, which it was not given")

        def run(*given: Any, **named: Any) -> Any:
            return self._run(command, *_require_plain(given, named))

        return run

    def _run(
        self, command: TerminalCommand, args: list[str], stdin: bytes, env: dict[str, str], folder: str
    ) -> Any:
        stdout = io.BytesIO()
        context = CommandContext(
            args=args, stdin=_stream(io.BytesIO(stdin)), stdout=_stream(stdout), fs=self._files, env=env
        )
        error = None
        result = CommandResult()
        try:
            if folder:
                self._files.chdir(folder)
            result = command.run(context, self._host)
        except Exception as raised:  # noqa: BLE001 - as in process, the script shows it and goes on
            error = str(raised)
        return stdout.getvalue(), dict(context.env), result.exit_code, result.stderr, error


def _stream(over: io.BytesIO) -> io.TextIOWrapper:
    """Return a stream of text over bytes, as commands of termish have: what is no text does not raise."""
    return io.TextIOWrapper(over, encoding="utf-8", errors="replace", newline="\n", write_through=True)


def _require_plain(
    given: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[list[str], bytes, dict[str, str], str]:
    if named or not (
        len(given) == 4
        and type(given[0]) is list
        and all(type(arg) is str for arg in given[0])
        and type(given[1]) is bytes
        and type(given[2]) is dict
        and all(type(text) is str for pair in given[2].items() for text in pair)
        and type(given[3]) is str
    ):
        raise ProtocolError("the worker passes a command something else than it takes")
    return given


def asking(
    name: str, ask: Asker, folder: Callable[[], str] | None = None
) -> Callable[[CommandContext], CommandResult]:
    """Return a command of a terminal in a worker that the host carries out.

    Args:
        name: of the command.
        ask: asks the host.
        folder: returns the current folder of a terminal over files of the worker's own.
    """

    def command(context: CommandContext) -> CommandResult:
        stdin: io.BufferedIOBase = context.stdin.buffer  # type: ignore[assignment]  # what termish gives
        where = "" if folder is None else folder()
        given = (list(map(str, context.args)), stdin.read(), dict(context.env), where)
        stdout, env, exit_code, stderr, error = ask("command", "", name, given, {})
        context.stdout.buffer.write(stdout)
        context.env.clear()
        context.env.update(env)
        if error is not None:
            raise RuntimeError(error)
        return CommandResult(exit_code=exit_code, stderr=stderr)

    return command


def told_transcript(found: Any) -> Any:
    """Return the transcript of a script as a value that crosses; anything else as it is."""
    return (found.text, found.failed, found.exit_code) if type(found) is Transcript else found


def read_transcript(found: Any) -> Transcript:
    """Return the transcript of a script, read from untrusted data.

    Raises:
        ProtocolError: it is no transcript.
    """
    if not (type(found) is tuple and [type(each) for each in found] == [str, bool, int]):
        raise ProtocolError("what a script showed is described wrongly")
    text, failed, exit_code = found
    return Transcript(text=text, failed=failed, exit_code=exit_code)
