"""A session whose guest code runs in a worker: the host's end.

It has the methods of `agex.sandbox.Session`, so that a task does not know where its code runs.
Nothing that the worker sends is believed: it is bounded, decoded by the codec, and refused if
it comes out of turn. A worker that is late, gone or hostile is killed, and the run ends with an
error; the next run gets a new worker, with the variables that were given back last.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from agex import values
from agex.errors import EvalError, SandboxError
from agex.isolation.executor import names_of
from agex.isolation.rpc.guest_functions import Functions
from agex.isolation.rpc.host_objects import Exports
from agex.isolation.rpc.task_environment import Place, StaysThere, Worker
from agex.isolation.wire import run_result as outcome
from agex.isolation.wire.codec import (
    CannotCross,
    Packing,
    described,
    encoded,
    is_kept,
    pack,
    pack_groups,
    unpack,
    unpack_groups,
)
from agex.isolation.wire.deadline import Clock
from agex.isolation.wire.error_codec import (
    OutOfMemory,
    ProtocolError,
    WorkerGone,
    WorkerLost,
    pack_error,
    unpack_error,
)
from agex.isolation.wire.framing import Frame
from agex.isolation.wire.turn_lock import Turn
from agex.sandbox import Limits, Result, Sandbox
from agex.sandbox.runtime.host_time import in_host_time
from agex.sandbox.runtime.limits import Stop

if TYPE_CHECKING:
    from agex.isolation.rpc.command_rpc import CommandRequests
    from agex.isolation.rpc.declarations import Declaration
    from agex.shell import TerminalCommand

__all__ = ["RemoteSession"]

T = TypeVar("T")

GRACE = 0.5
"""Seconds after its deadline in which a worker may still end its run by itself."""
CHORES = 10.0
"""Seconds at least for what is not the guest's: to take variables, to give them back. A run's if more."""


class RemoteSession:
    """Guest code in a worker, as often as wanted.

    Args:
        place: where, and under what.
        namespace: its first variables.
    """

    packs = True

    def __init__(self, place: Place, namespace: Mapping[str, Any]) -> None:
        seconds, chars = place.limits.seconds, place.limits.output_chars
        sandbox = Sandbox(place.policy, limits=Limits(seconds=seconds, output_chars=chars))
        self._place = place
        self._monitor = sandbox.session()
        self._monitor.serves = True
        self._allow = values.Allow(place.classes)
        self._functions = Functions(self._call_function)
        self._exports = Exports(
            sandbox,
            self._monitor,
            allow=self._allow,
            granted=place.granted,
            take=self._functions.take,
            give=self._functions.number,
        )
        self._files = place.file_requests()
        self._commands: CommandRequests | None = None  # while a script runs
        self._worker: Worker | None = None
        self._turn = Turn()
        self._clock: Clock | None = None
        self._ending: BaseException | None = None
        self._runs = 0
        self._outermost: object | None = None  # stands for the run that is not in another
        self._output = outcome.gathered(chars)
        self._names: dict[str, Any] = {}
        self._bound: dict[str, Any] = {}
        self._modules: dict[str, str] = {}
        self._fresh: set[str] = set()  # names that the worker was not told of yet
        self._ran = False  # since the variables were last given back
        self._after: RemoteSession | None = None
        self._closed = False
        self._why = ""
        self.defined: frozenset[str] = frozenset()
        self.add(namespace)

    # -- names ---------------------------------------------------------------------

    @property
    def builtins(self) -> Mapping[str, Any]:
        """What the guest finds under a name that is none of its own variables, as the host has it."""
        return {**self._monitor.builtins, **self._bound}

    @property
    def is_running(self) -> bool:
        """Whether a run is on, in whatever thread."""
        return self._runs > 0

    def add(self, names: Mapping[str, Any]) -> None:
        """Give the guest variables."""
        self._names.update(names)
        self._fresh.update(names)

    def bind(self, name: str, value: Any) -> None:
        """Give the guest a name, as a builtin is: it can be shadowed and is not part of `namespace`.

        A dict is kept: what the guest puts into it is given back. The attributes of a
        `SimpleNamespace` are the inputs of the task.
        """
        self._bound[name] = value
        self._fresh.add(name)

    @property
    def namespace(self) -> dict[str, Any]:
        """The guest's variables: those it changed as `agex.values.Packed`, the others as they were given."""
        self._give_back()
        return {name: value for name, value in self._names.items() if name not in self._bound}

    @property
    def modules(self) -> dict[str, str]:
        """The variables that are modules, each with what to import for it."""
        self._give_back()
        return dict(self._modules)

    def import_again(self, modules: Mapping[str, str]) -> None:
        """Bind variables to modules as an earlier session had them, under the grants of this one."""
        self._modules.update(modules)
        self._fresh.update(modules)

    @property
    def kept(self) -> dict[str, Any]:
        """What was bound as a dict, as it is now."""
        self._give_back()
        return {name: value for name, value in self._bound.items() if is_kept(value)}

    def look_up(self, name: str) -> Any:
        """Return a variable of the guest: a copy, or a function to call; None where there is none."""
        known = self._names.get(name)
        if self._worker is None and type(known) is not values.Packed:
            return known
        self.open()
        done = self._chore({"k": "get", "name": name})
        if done.header.get("error") is not None:
            return StaysThere(str(unpack_error(done.header["error"], self._allow.registered)))
        return self._checked(lambda: self._unpack_in_time(done, done.parts))

    def is_guest_function(self, value: object) -> bool:
        """Tell whether *value* is a function that the guest wrote."""
        return self._functions.number(value) is not None

    def declaration(self, function: Any) -> Declaration | None:
        """Return what a function of the guest says of itself; None for one that it did not write.

        Raises:
            EvalError: the worker is not usable any more.
        """
        from agex.isolation.rpc.declarations import read

        number = self._functions.number(function)
        if number is None:
            return None
        self.open()
        found = self._chore({"k": "declare", "id": number}).header.get("d")
        return None if found is None else self._checked(lambda: read(found, self._monitor))

    def open(self) -> None:
        """Start the worker and hand it what it was given so far.

        Raises:
            IsolationUnavailable: there is no such worker here.
            CannotCross: a variable can neither be copied nor used from there.
        """
        with self._turn, self._monitor.paused():  # code of another session's may be what needs it
            if self._closed:
                raise SandboxError("this session is closed; open another one")
            if self._worker is None:
                self._worker = self._place.start(self._exports.descriptions())
                self._fresh = {*self._names, *self._bound, *self._modules}
            if self._fresh:
                self._put()

    def close(self) -> None:
        """End the worker. Functions that it gave can still be called, in a worker of their own."""
        with self._turn:
            if self._closed:
                return
            self._closed = True
            if self._worker is not None:
                with contextlib.suppress(WorkerLost):
                    self._keep_functions()
            if self._worker is not None:
                self._worker.close()
                self._worker = None

    def _put(self) -> None:
        """Hand the worker what it does not have yet."""
        given = {name: value for name, value in (self._names | self._bound).items() if name in self._fresh}
        header, plain = described(given, self._bound)
        header["modules"] = {name: self._modules[name] for name in self._fresh & self._modules.keys()}
        groups = encoded(plain, self._place.level, allow=self._allow, guest=self._exports)
        packed = pack_groups(groups)
        self._fresh = set()
        self._chore({**header, "k": "put", "g": packed.header}, packed.parts)

    # -- ending a run --------------------------------------------------------------

    def stop(self, ending: BaseException) -> NoReturn:
        """End the run from a host function that the guest called; the result carries *ending*."""
        if self._ending is None:
            self._ending = ending
        raise Stop

    def interrupt(self, ending: BaseException) -> None:
        """End the run from anywhere: at the guest's next stop check, or by killing its worker."""
        if self._ending is None:
            self._ending = ending
        self._monitor.interrupt(ending)
        worker, run = self._worker, self._outermost
        if worker is None or run is None:
            return
        worker.interrupt()
        timer = threading.Timer(GRACE, self._kill_late, [worker, run])
        timer.daemon = True
        timer.start()

    def _kill_late(self, worker: Worker, run: object) -> None:
        if self._outermost is run and self._worker is worker:
            worker.terminate()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock of the run stand still while the host works for the guest."""
        clock = self._clock.paused() if self._clock is not None else contextlib.nullcontext()
        with clock, self._monitor.paused():
            yield

    # -- running -------------------------------------------------------------------

    def run(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Run a program. Whatever the guest does is in the result; nothing of it is raised."""
        return self._run(source, filename, echo=echo, awaits=False)

    async def arun(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Like `run`, with ``await`` allowed at the top level, in an event loop of the worker's."""
        return await asyncio.to_thread(self._run, source, filename, echo=echo, awaits=True)

    def run_script(self, script: str, commands: Mapping[str, TerminalCommand]) -> Result:
        """Run shell commands in the worker, over the workspace; the value is what they showed.

        Args:
            script: the commands, as a `agex.shell.Transcript` tells of them.
            commands: of the host, by name: the same at each call.
        """
        from agex.isolation.rpc.command_rpc import CommandRequests, read_transcript

        def begin() -> Packing:
            self._ran = True
            header = {"k": "script", "commands": [*commands]}
            return Packing(header, [script.encode("utf-8", "surrogatepass")])

        if self._files is None:
            raise SandboxError("there is no terminal without a workspace")
        self._commands = CommandRequests(commands, self._files.guarded, self.paused)
        try:
            return self._guarded(begin, read_transcript)
        finally:
            self._commands = None

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Call a function under the same limits: in the worker, if it is the guest's."""
        number = self._functions.number(function)
        if number is None:
            return self._monitor.call(function, *args, **kwargs)
        return self._guest_call(number, args, kwargs, awaits=inspect.iscoroutinefunction(function))

    async def acall(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Like `call`; an awaitable that the function gives back is awaited."""
        number = self._functions.number(function)
        if number is None:
            return await self._monitor.acall(function, *args, **kwargs)
        return await asyncio.to_thread(self._guest_call, number, args, kwargs, awaits=True)

    def _run(self, source: str, filename: str, *, echo: bool, awaits: bool) -> Result:
        def begin() -> Packing:
            self._ran = True
            texts = [text.encode("utf-8", "surrogatepass") for text in (source, filename)]
            return Packing({"k": "run", "echo": echo, "await": awaits}, texts)

        return self._guarded(begin)

    def _guest_call(
        self, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, awaits: bool
    ) -> Result:
        def begin() -> Packing:
            self._ran = True
            packed = self._pack((args, dict(kwargs)), "an argument")
            return Packing({"k": "call", "id": number, "await": awaits, "v": packed.header}, packed.parts)

        return self._guarded(begin)

    def _guarded(self, begin: Callable[[], Packing], read: Callable[[Any], Any] | None = None) -> Result:
        """Carry out a run; what ends the worker ends the run with an error.

        Args:
            begin: makes the request.
            read: makes of the value what it is to be, or says that no worker gives such a value.
        """
        start = time.perf_counter()
        with self._turn, self._opened(), self._running() as outermost:
            try:
                message = begin()
                done = self._request(message.header, message.parts)
                result = self._result(done)
                if (
                    read is not None
                    and result.error is None
                    and result.stopped is None
                    and self._ending is None
                ):
                    result.value = self._checked(lambda: read(result.value))
            except CannotCross as error:
                result = Result(error=error, traceback=f"TypeError: {error}")
            except WorkerLost as lost:
                result = self._lost_result(lost)
            result.duration = time.perf_counter() - start
            result.enforcement = result.enforcement._replace(
                isolation=self._place.level,
                memory=self._place.limits.memory_mb is not None,
                walls=self._place.walls,
            )
            return self._settled(result) if outermost else result

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        """Have a worker before the clock of a run starts; without one, the run says why."""
        self._why = ""
        try:
            self.open()
        except WorkerLost as lost:
            self._why = str(lost)
        yield

    @contextlib.contextmanager
    def _running(self) -> Iterator[bool]:
        """Mark a run. The clock of the outermost one counts for those in it, unless it stands still."""
        outermost = self._runs == 0
        outer_output, self._output = self._output, outcome.gathered(self._place.limits.output_chars)
        outer_clock = self._clock
        if outermost:
            self._ending = None
            self._outermost = object()
        if outer_clock is None or outer_clock.stands:
            self._clock = Clock(self._place.limits.seconds)
        self._runs += 1
        try:
            with contextlib.nullcontext() if self._clock is None else self._clock.counted():
                yield outermost
        finally:
            self._runs -= 1
            self._output, self._clock = outer_output, outer_clock
            if self._runs == 0:
                self._outermost = None

    def _settled(self, result: Result) -> Result:
        """Put what the host ended the run with in its place."""
        ending = self._ending
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

    def _result(self, done: Frame) -> Result:
        if done.header.get("stopped") is True and self._ending is None:
            raise self._lose(ProtocolError("a run says that it was stopped, and nobody stopped it"))
        self.defined = frozenset(names_of(outcome.listed(done.header.get("defined"))))
        return self._checked(
            lambda: outcome.read_outcome(done, self._output, self._unpack_in_time, self._allow.registered)
        )

    def _lost_result(self, lost: WorkerLost) -> Result:
        ending = self._ending
        self._ending = None if isinstance(ending, TimeoutError) else ending
        return outcome.lost_result(lost, ending, self._output.text())

    # -- messages ------------------------------------------------------------------

    def _chore(self, header: Mapping[str, Any], parts: Sequence[Any] = ()) -> Frame:
        """Have the worker do what is not the guest's."""
        with self._turn:
            seconds = max(CHORES, self._place.limits.seconds or 60.0)
            outer, self._clock = self._clock, Clock(seconds, of_guest=False)
            try:
                return self._request(header, parts)
            finally:
                self._clock = outer

    def _request(self, header: Mapping[str, Any], parts: Sequence[Any]) -> Frame:
        """Give the worker the turn until it is done.

        Raises:
            WorkerLost: the worker is late, gone or hostile; it is killed.
        """
        worker = self._worker
        if worker is None:
            raise WorkerLost(self._why)
        with self._monitor.paused():  # nothing here is the guest's, even if guest code is what called
            try:
                worker.channel.send(header, parts, deadline=self._due())
                while True:
                    frame = worker.channel.receive(deadline=self._due())
                    if frame.kind == "done":
                        return frame
                    if frame.kind == "out":
                        self._print(frame)
                    elif frame.kind == "ask" and (self._runs or _is_of_files(frame)):
                        self._answer(worker, frame)
                    else:
                        outcome.refuse(frame)
            except (WorkerGone, TimeoutError, ProtocolError) as error:
                raise self._lose(error) from error
            except KeyboardInterrupt:
                self._lose(WorkerGone("interrupted"))
                raise

    def _due(self) -> float | None:
        if self._clock is None or self._clock.due is None:
            return None
        return self._clock.due + GRACE

    def _print(self, frame: Frame) -> None:
        for part in frame.parts[:1]:
            self._output.write(outcome.text_of(part))

    def _answer(self, worker: Worker, asked: Frame) -> None:
        """Do what the worker asks for, and tell it what came of it."""
        begun, stood = time.monotonic(), self._clock.stood if self._clock is not None else 0.0
        reply: dict[str, Any] = {"k": "reply"}
        packed = Packing(0)
        try:
            with self._turn.lent():  # the host works, and may call the guest, from whatever thread
                packed = self._done(asked, reply)
        except Stop:
            reply["stop"] = True
        if self._worker is not worker:  # it was lost in a call of the guest's
            raise WorkerLost(self._why)
        if self._ending is not None and self._runs:
            reply["stop"] = True
        if self._clock is not None:
            stood = self._clock.stood - stood
        reply["seconds"] = max(time.monotonic() - begun - stood, 0.0)
        reply["v"] = packed.header
        worker.channel.send(reply, packed.parts, deadline=self._due())

    def _done(self, asked: Frame, reply: dict[str, Any]) -> Packing:
        if _is_of_files(asked):
            return self._done_with_files(asked, reply)
        work = in_host_time(self._work(asked.header))

        def carry_out() -> Any:
            args, kwargs = self._unpack(asked, asked.parts)
            with contextlib.nullcontext() if self._clock is None else self._clock.lent():
                return work(*args, **kwargs)

        result = self._monitor.call(carry_out)
        reply["out"] = result.stdout
        error = result.error
        if isinstance(error, ProtocolError | WorkerLost):  # there is nobody to be told
            raise error
        if isinstance(error, EvalError) and isinstance(error.__cause__, TimeoutError):
            self._ending = self._ending or error.__cause__
            raise Stop
        if error is None and result.stopped is None:
            try:
                return self._pack(result.value, "the result")
            except CannotCross as cannot:
                error = cannot
        if error is not None:
            reply["error"] = pack_error(error, str(error))
        return Packing(0)

    def _work(self, asked: Mapping[str, Any]) -> Callable[..., Any]:
        if asked.get("what") != "command":
            return self._exports.work(asked)
        if self._commands is None:
            raise ProtocolError("the worker asks for a command, and no script runs")
        return self._commands.work(asked.get("name"))

    def _done_with_files(self, asked: Frame, reply: dict[str, Any]) -> Packing:
        """Do what the worker asks for of files; whatever goes wrong there is the guest's to know."""
        if self._files is None:
            raise ProtocolError("the worker asks for files, and it was given none")
        call = self._unpack_in_time(asked, asked.parts)
        try:
            return self._pack(self._files.answer(asked.header.get("name"), call), "the result")
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - as in process, the guest may catch it
            reply["error"] = pack_error(error, str(error))
        return Packing(0)

    def _pack(self, value: Any, what: str) -> Packing:
        return pack(value, what, allow=self._allow, guest=self._exports)

    def _unpack(self, frame: Frame, parts: Sequence[memoryview]) -> Any:
        level, exports = self._place.level, self._exports
        return unpack(frame.header.get("v"), parts, allow=self._allow, guest=exports, origin=level)

    def _unpack_in_time(self, frame: Frame, parts: Sequence[memoryview]) -> Any:
        """Decode a value under limits: what it holds may take its time."""
        result = self._monitor.call(self._unpack, frame, parts)
        if result.error is not None:
            raise ProtocolError(str(result.error)) from result.error
        return result.value

    def _checked(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except ProtocolError as error:
            raise self._lose(error) from error

    def _lose(self, error: Exception) -> WorkerLost:
        """Kill the worker; say why, and what is left."""
        worker, self._worker = self._worker, None
        self._ran = False
        ended = worker.kill() if worker is not None else "it was ended before"
        lost = WorkerLost(outcome.lost_because(error, ended, self._clock))
        self._why = str(lost)
        if isinstance(ended, OutOfMemory):
            lost.memory = ended
        return lost

    # -- variables -----------------------------------------------------------------

    def _give_back(self) -> None:
        """Take the variables that the guest changed, as bytes."""
        if not self._ran or self._worker is None:
            return
        with self._turn:
            done = self._chore({"k": "sync"})
            self._ran = False
            groups = self._checked(lambda: unpack_groups(done.header.get("g"), done.parts))
            for group in groups:
                own = replace(group, origin=self._place.level)
                for name in own.names:
                    home = self._bound if name in self._bound else self._names
                    home[name] = values.Packed(own, name)
            there = {*names_of(outcome.listed(done.header.get("names")))}
            self._names = {name: value for name, value in self._names.items() if name in there}
            self._modules = dict(outcome.modules_of(done.header.get("modules")))

    # -- functions of the guest ----------------------------------------------------

    def _call_function(
        self, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, awaits: bool
    ) -> Result:
        with self._turn:
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
        done = self._chore({"k": "keep", "ids": numbers})
        groups = self._checked(lambda: unpack_groups(done.header.get("g"), done.parts))
        own = [replace(group, origin=self._place.level) for group in groups]
        names = {name: values.Packed(group, name) for group in own for name in group.names}
        self._after = RemoteSession(self._place, names)
        for name, value in self._bound.items():
            self._after.bind(name, value)


def _is_of_files(asked: Frame) -> bool:
    return asked.header.get("what") == "file"
