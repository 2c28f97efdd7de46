"""A session whose guest code runs in a worker: the host's end.

It has the methods of `agex.sandbox.Session`, so that a task does not know where its code runs. Its parts are
the `connection`, the `session_variables` and the `host_requests`. A worker that is late, gone or hostile is
killed, and the run ends with an error; the next run gets a new worker, with the variables last taken back.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from agex import values
from agex.errors import EvalError, SandboxError
from agex.isolation.executor import names_of
from agex.isolation.rpc.guest_functions import GuestFunctions
from agex.isolation.rpc.host_objects import HostExports
from agex.isolation.rpc.task_environment import StaysThere, TaskEnvironment
from agex.isolation.wire import run_result as outcome
from agex.isolation.wire.codec import CannotCross, Packing, unpack_groups
from agex.isolation.wire.error_codec import ProtocolError, WorkerLost
from agex.isolation.worker.host_requests import HostRequests, SessionCodec
from agex.isolation.worker.session_variables import SessionVariables
from agex.sandbox import Limits, Result, Sandbox
from agex.sandbox.runtime import audit_hook

if TYPE_CHECKING:
    from agex.isolation.rpc.declarations import Declaration
    from agex.shell import TerminalCommand

__all__ = ["RemoteSession"]


class RemoteSession:
    """Guest code in a worker, as often as wanted.

    Args:
        environment: says where, and under which policy and limits.
        namespace: its first variables.
    """

    packs = True

    def __init__(self, environment: TaskEnvironment, namespace: Mapping[str, Any]) -> None:
        seconds, chars = environment.limits.seconds, environment.limits.output_chars
        sandbox = Sandbox(environment.policy, limits=Limits(seconds=seconds, output_chars=chars))
        self._environment = environment
        self._monitor = sandbox.session()
        self._monitor.serves = True
        self._functions = GuestFunctions(self._call_function)
        allow = values.Allow(environment.classes)
        exports = HostExports(
            sandbox,
            self._monitor,
            allow=allow,
            granted=environment.granted,
            take=self._functions.take,
            give=self._functions.number,
        )
        self._codec = SessionCodec(environment.level, allow, exports, self._monitor)
        self._requests = HostRequests(environment, self._monitor, self._codec)
        self._connection = self._requests.connection
        self._variables = SessionVariables(self._connection, self._codec)
        self._after: RemoteSession | None = None
        self._closed = False
        self.defined: frozenset[str] = frozenset()
        self.add(namespace)

    # -- names ---------------------------------------------------------------------

    @property
    def builtins(self) -> Mapping[str, Any]:
        """The names that guest code finds beside its variables, with the values that the host has."""
        return {**self._monitor.builtins, **self._variables.bound}

    @property
    def is_running(self) -> bool:
        """Whether a run is on, in whatever thread."""
        return self._connection.is_running

    def add(self, names: Mapping[str, Any]) -> None:
        """Add variables for guest code."""
        self._variables.add(names)

    def bind(self, name: str, value: Any) -> None:
        """Bind a name as a builtin is bound: it can be shadowed and is not part of `namespace`.

        A dict is kept: it is returned with what guest code puts into it. The attributes of a
        `SimpleNamespace` are the inputs of the task.
        """
        self._variables.bind(name, value)

    @property
    def namespace(self) -> dict[str, Any]:
        """The variables of guest code: those it changed as `agex.values.Packed`, others as given."""
        return self._variables.namespace()

    @property
    def modules(self) -> dict[str, str]:
        """The variables that are modules, each with the import that makes it."""
        return self._variables.modules()

    def import_again(self, modules: Mapping[str, str]) -> None:
        """Bind variables to modules as an earlier session had them, under the grants of this one."""
        self._variables.import_again(modules)

    @property
    def kept(self) -> dict[str, Any]:
        """The names bound to dicts, with their contents as they are now."""
        return self._variables.kept()

    def look_up(self, name: str) -> Any:
        """Return a variable of guest code: a copy, or a function to call; None where there is none."""
        if self._variables.has_here(name):
            return self._variables.here(name)
        self.open()
        return self._variables.fetched(name)

    def is_guest_function(self, value: object) -> bool:
        """Return whether guest code wrote a function."""
        return self._functions.number(value) is not None

    def declaration(self, function: Any) -> Declaration | None:
        """Return the declaration of a guest function; None for one that guest code did not write.

        Raises:
            EvalError: the worker is not usable any more.
        """
        from agex.isolation.rpc.declarations import read

        number = self._functions.number(function)
        if number is None:
            return None
        self.open()
        found = self._connection.chore({"k": "declare", "id": number}).header.get("d")
        return None if found is None else self._connection.checked(lambda: read(found, self._monitor))

    def begin(self) -> None:
        """Open the session; where modules are yet to be loaded for its worker, do not wait for them.

        They are loaded while the caller asks a model, and the next run waits for the rest.

        Raises:
            IsolationUnavailable: there is no such worker here.
            CannotCross: a variable can neither be copied nor used from there.
        """
        connection, prepare = self._connection, self._environment.prepare
        with connection.turn, self._monitor.paused():
            if connection.worker is None and prepare is not None and not self._closed:
                about = self._codec.exports.descriptions()
                if not audit_hook.call_as_host(prepare, about):
                    self._variables.require_crossing()
                    return
        self.open()

    def open(self) -> None:
        """Start the worker if there is none, and send it the variables that it lacks.

        Raises:
            IsolationUnavailable: there is no such worker here.
            CannotCross: a variable can neither be copied nor used from there.
        """
        connection = self._connection
        with connection.turn, self._monitor.paused():  # code of another session may be what needs it
            if self._closed:
                raise SandboxError("this session is closed; open another one")
            connection.drop_ended()
            if connection.worker is None:
                about = self._codec.exports.descriptions()
                # Also for guest code of another session: a worker of full Python is given a directory.
                connection.worker = audit_hook.call_as_host(self._environment.start, about)
                self._variables.expect_all()
            self._variables.put()

    def close(self) -> None:
        """End the worker. Functions that it gave can still be called, in a worker of their own."""
        with self._connection.turn:
            if self._closed:
                return
            self._closed = True
            if self._connection.worker is not None:
                with contextlib.suppress(WorkerLost):
                    self._keep_functions()
            self._connection.close()

    # -- ending a run --------------------------------------------------------------

    def stop(self, ending: BaseException) -> NoReturn:
        """End the run from a host function that guest code called; the result carries *ending*."""
        self._connection.stop(ending)

    def interrupt(self, ending: BaseException) -> None:
        """End the run from anywhere: at the next stop check of guest code, or by killing its worker."""
        self._connection.interrupt(ending)

    def paused(self) -> AbstractContextManager[None]:
        """Let the clock of the run stand still while the host works for guest code."""
        return self._connection.paused()

    # -- running -------------------------------------------------------------------

    def run(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Run a program. Its errors are in the result; none is raised."""
        return self._run(source, filename, echo=echo, awaits=False)

    async def arun(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Like `run`, with ``await`` allowed at the top level, in an event loop of the worker."""
        return await asyncio.to_thread(self._run, source, filename, echo=echo, awaits=True)

    def run_script(self, script: str, commands: Mapping[str, TerminalCommand]) -> Result:
        """Run shell commands in the worker, over the workspace; the value is their transcript.

        Args:
            script: the commands, as an `agex.shell.Transcript` has them.
            commands: host commands by name: the same at each call.
        """
        from agex.isolation.rpc.command_rpc import read_transcript

        def begin() -> Packing:
            header = {"k": "script", "commands": [*commands]}
            return Packing(header, [script.encode("utf-8", "surrogatepass")])

        with self._requests.serving(commands):
            return self._guarded(begin, read_transcript)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Call a function under the same limits: a guest function in the worker, any other here."""
        number = self._functions.number(function)
        if number is None:
            return self._monitor.call(function, *args, **kwargs)
        return self._guest_call(number, args, kwargs, awaits=inspect.iscoroutinefunction(function))

    async def acall(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Like `call`; an awaitable that the function returns is awaited."""
        number = self._functions.number(function)
        if number is None:
            return await self._monitor.acall(function, *args, **kwargs)
        return await asyncio.to_thread(self._guest_call, number, args, kwargs, awaits=True)

    def _run(self, source: str, filename: str, *, echo: bool, awaits: bool) -> Result:
        def begin() -> Packing:
            texts = [text.encode("utf-8", "surrogatepass") for text in (source, filename)]
            return Packing({"k": "run", "echo": echo, "await": awaits}, texts)

        return self._guarded(begin)

    def _guest_call(
        self, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, awaits: bool
    ) -> Result:
        def begin() -> Packing:
            packed = self._codec.pack((args, dict(kwargs)), "an argument")
            return Packing({"k": "call", "id": number, "await": awaits, "v": packed.header}, packed.parts)

        return self._guarded(begin)

    def _guarded(self, begin: Callable[[], Packing], read: Callable[[Any], Any] | None = None) -> Result:
        """Carry out a run; the loss of the worker ends the run with an error.

        Args:
            begin: makes the request.
            read: converts the value, or refuses one that no worker sends.
        """
        start, connection = time.perf_counter(), self._connection
        notes: list[str] = []
        with connection.turn, connection.opened(self.open), connection.running() as outermost:
            try:
                connection.has_run = True
                if outermost:
                    notes += connection.push_files()
                message = begin()
                result = self._result(message)
                if (
                    read is not None
                    and result.error is None
                    and result.stopped is None
                    and connection.ending is None
                ):
                    result.value = connection.checked(lambda: read(result.value))
                if outermost:
                    notes += connection.collect_files()
            except CannotCross as error:
                result = Result(error=error, traceback=f"TypeError: {error}")
            except WorkerLost as lost:
                result = self._lost_result(lost)
            result.stdout += "".join(f"{note}\n" for note in notes)
            result.duration = time.perf_counter() - start
            result.enforcement = result.enforcement._replace(
                isolation=self._environment.level,
                python=self._environment.python,
                memory=self._environment.limits.memory_mb is not None,
                walls=self._environment.walls,
            )
            return self._settled(result) if outermost else result

    def _result(self, message: Packing) -> Result:
        connection, codec = self._connection, self._codec
        done = connection.request(message.header, message.parts)
        if done.header.get("stopped") is True and connection.ending is None:
            raise connection.lose(ProtocolError("a run says that it was stopped, and nobody stopped it"))
        self.defined = frozenset(names_of(outcome.listed(done.header.get("defined"))))
        return connection.checked(
            lambda: outcome.read_outcome(
                done, connection.output, codec.unpack_in_time, codec.allow.registered
            )
        )

    def _lost_result(self, lost: WorkerLost) -> Result:
        ending = self._connection.ending
        self._connection.ending = None if isinstance(ending, TimeoutError) else ending
        return outcome.lost_result(lost, ending, self._connection.output.text())

    def _settled(self, result: Result) -> Result:
        """Replace the outcome of a run that the host ended by the ending."""
        ending = self._connection.ending
        if ending is None:
            return result
        result.value = result.echo = None
        if isinstance(ending, KeyboardInterrupt):
            raise ending
        if isinstance(ending, TimeoutError):
            result.error, result.stopped = outcome.timed_out(ending), None
            result.traceback = result.traceback or f"EvalError: {result.error}"
        else:
            result.error, result.stopped, result.traceback = None, ending, ""
        return result

    # -- guest functions after the session -----------------------------------------

    def _call_function(
        self, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, awaits: bool
    ) -> Result:
        with self._connection.turn:
            if not self._closed:
                return self._guest_call(number, args, kwargs, awaits=awaits)
            if self._after is None:
                raise EvalError("the worker that this function came from was lost before it could be kept")
            other = self._after.look_up(f"f{number}")
            if isinstance(other, StaysThere) or other is None:
                raise EvalError("the function could not be kept when its task ended")
            return self._after.call(other, *args, **kwargs)

    def _keep_functions(self) -> None:
        """Take the functions that the host still has, as source and captures, for a worker of their own."""
        numbers = self._functions.numbers()
        if not numbers:
            return
        connection = self._connection
        done = connection.chore({"k": "keep", "ids": numbers})
        groups = connection.checked(lambda: unpack_groups(done.header.get("g"), done.parts))
        own = [replace(group, origin=self._environment.level) for group in groups]
        names = {name: values.Packed(group, name) for group in own for name in group.names}
        self._after = RemoteSession(self._environment, names)
        for name, value in self._variables.bound.items():
            self._after.bind(name, value)
