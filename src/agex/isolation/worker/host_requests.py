"""The work that a worker asks of the host: calls of host objects, commands, files.

Values cross through `SessionCodec`; `HostRequests` does the work, in the session of the monitor, under the
policy and limits of the task.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agex import values
from agex.errors import EvalError, SandboxError
from agex.isolation.rpc.host_objects import HostExports
from agex.isolation.rpc.task_environment import TaskEnvironment
from agex.isolation.wire.codec import CannotCross, Packing, pack, unpack
from agex.isolation.wire.error_codec import ProtocolError, WorkerLost, pack_error
from agex.isolation.wire.framing import Frame
from agex.isolation.worker.connection import WorkerConnection, is_of_files
from agex.sandbox import Session
from agex.sandbox.runtime.host_time import in_host_time
from agex.sandbox.runtime.limits import Stop

if TYPE_CHECKING:
    from agex.isolation.rpc.command_rpc import CommandRequests
    from agex.shell import TerminalCommand

__all__ = ["HostRequests", "SessionCodec"]


class SessionCodec:
    """Encodes and decodes the values of one session.

    Args:
        level: of isolation, from which the worker's code comes.
        allow: classes whose instances cross by their fields.
        exports: names what does not cross, and finds what is named.
        monitor: decodes under limits.
    """

    def __init__(self, level: str, allow: values.Allow, exports: HostExports, monitor: Session) -> None:
        self.level = level
        self.allow = allow
        self.exports = exports
        self._monitor = monitor

    def pack(self, value: Any, what: str) -> Packing:
        """Encode a value for the worker.

        Raises:
            CannotCross: a part of it can neither be copied nor used from there.
        """
        return pack(value, what, allow=self.allow, guest=self.exports)

    def unpack(self, frame: Frame, parts: Sequence[memoryview]) -> Any:
        """Decode a value of the worker.

        Raises:
            ProtocolError: it is none.
        """
        found = frame.header.get("v")
        return unpack(found, parts, allow=self.allow, guest=self.exports, origin=self.level)

    def unpack_in_time(self, frame: Frame, parts: Sequence[memoryview]) -> Any:
        """Decode a value under limits: a hostile one may take its time.

        Raises:
            ProtocolError: it is none, or takes too long.
        """
        result = self._monitor.call(self.unpack, frame, parts)
        if result.error is not None:
            raise ProtocolError(str(result.error)) from result.error
        return result.value


class HostRequests:
    """Carries out what the worker of one session asks for.

    Args:
        environment: says which files and limits there are.
        monitor: does the work.
        codec: decodes arguments, encodes results.
    """

    def __init__(self, environment: TaskEnvironment, monitor: Session, codec: SessionCodec) -> None:
        self._monitor = monitor
        self._codec = codec
        self._files = environment.file_requests()
        self._commands: CommandRequests | None = None  # while a script runs
        self.connection = WorkerConnection(environment, monitor, self._done)

    @contextlib.contextmanager
    def serving(self, commands: Mapping[str, TerminalCommand]) -> Iterator[None]:
        """Let the worker ask for commands of a terminal, for the length of a block."""
        from agex.isolation.rpc.command_rpc import CommandRequests

        if self._files is None:
            raise SandboxError("there is no terminal without a workspace")
        self._commands = CommandRequests(commands, self._files.guarded, self.connection.paused)
        try:
            yield
        finally:
            self._commands = None

    def _done(self, asked: Frame, reply: dict[str, Any]) -> Packing:
        if is_of_files(asked):
            return self._done_with_files(asked, reply)
        connection, work = self.connection, in_host_time(self._work(asked.header))
        is_command = asked.header.get("what") == "command"
        if is_command:
            connection.collect_files()  # a command works on the files of the host

        def carry_out() -> Any:
            args, kwargs = self._codec.unpack(asked, asked.parts)
            with contextlib.nullcontext() if connection.clock is None else connection.clock.lent():
                return work(*args, **kwargs)

        result = self._monitor.call(carry_out)
        if is_command:
            connection.push_files()
        reply["out"] = result.stdout
        error = result.error
        if isinstance(error, ProtocolError | WorkerLost):  # there is nobody to be told
            raise error
        if isinstance(error, EvalError) and isinstance(error.__cause__, TimeoutError):
            connection.ending = connection.ending or error.__cause__
            raise Stop
        if error is None and result.stopped is None:
            try:
                return self._codec.pack(result.value, "the result")
            except CannotCross as cannot:
                error = cannot
        if error is not None:
            reply["error"] = pack_error(error, str(error))
        return Packing(0)

    def _work(self, asked: Mapping[str, Any]) -> Callable[..., Any]:
        if asked.get("what") != "command":
            return self._codec.exports.work(asked)
        if self._commands is None:
            raise ProtocolError("the worker asks for a command, and no script runs")
        return self._commands.work(asked.get("name"))

    def _done_with_files(self, asked: Frame, reply: dict[str, Any]) -> Packing:
        """Do the work on files; its errors go to guest code, which may catch them."""
        if self._files is None:
            raise ProtocolError("the worker asks for files, and it was given none")
        call = self._codec.unpack_in_time(asked, asked.parts)
        try:
            return self._codec.pack(self._files.answer(asked.header.get("name"), call), "the result")
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - as in process, guest code may catch it
            reply["error"] = pack_error(error, str(error))
        return Packing(0)
