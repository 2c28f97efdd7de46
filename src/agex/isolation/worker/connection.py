"""The host's connection to the worker of one session: requests, the worker's questions, deadlines, its loss.

One side has the turn at any time. The host hands it over with a request; the worker hands it back with
``done``, or for a while with ``ask``. Nothing that the worker sends is believed: a worker that is late, gone
or hostile is killed.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from agex.isolation.rpc.task_environment import ORPHANED, TaskEnvironment, WorkerHandle
from agex.isolation.wire import run_result as outcome
from agex.isolation.wire.codec import Packing
from agex.isolation.wire.deadline import RunClock
from agex.isolation.wire.error_codec import OutOfMemory, ProtocolError, WorkerGone, WorkerLost
from agex.isolation.wire.framing import Frame
from agex.sandbox import Session
from agex.sandbox.runtime import audit_hook
from agex.sandbox.runtime.limits import Stop

__all__ = ["TurnLock", "WorkerConnection", "is_of_files"]

T = TypeVar("T")

GRACE = 0.5
"""Seconds after its deadline in which a worker may still end its run by itself."""
_FROM_OUTSIDE = {*(f"killed by {number.name}" for number in (signal.SIGKILL, signal.SIGTERM)), ORPHANED}
"""Ends of a worker that hung up: code that a kernel confines sends itself no such signal."""
CHORES = 10.0
"""Seconds at least for a request that runs no guest code, as to take variables; those of a run if more."""


class TurnLock:
    """A lock that its holder can enter again, and lend for a while.

    The host's work for a worker may call guest functions in other threads: a task in an event loop, a pool
    of threads. They talk to the worker one after the other, and finish before the holder talks to it again.
    """

    def __init__(self) -> None:
        self._locks = [threading.RLock()]

    def __enter__(self) -> None:
        while True:
            lock = self._locks[-1]
            lock.acquire()
            if lock is self._locks[-1]:
                return
            lock.release()  # it was lent, or returned, meanwhile

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks[-1].release()

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Let other threads take the lock, for the length of a block of its holder."""
        inner = threading.RLock()
        self._locks.append(inner)
        try:
            yield
        finally:
            with inner:  # its current holder finishes first
                self._locks.remove(inner)


class WorkerConnection:
    """The connection of one session, over the workers that serve it one after the other.

    Args:
        environment: starts workers, under one policy and limits.
        monitor: the session in this process that works for the worker.
        answer: carries out what a worker asks for; it writes what came of it into the reply.

    Attributes:
        worker: that serves now; None before it is started, and after it is lost.
        turn: held while anybody talks to the worker.
        clock: of the run that is on; None between runs.
        ending: with which the host ends the run.
        output: of the run that is on, or of the one before.
        has_run: whether code ran since the variables were last returned.
    """

    def __init__(
        self,
        environment: TaskEnvironment,
        monitor: Session,
        answer: Callable[[Frame, dict[str, Any]], Packing],
    ) -> None:
        self._environment = environment
        self._monitor = monitor
        self._carry_out = answer
        self.worker: WorkerHandle | None = None
        self.turn = TurnLock()
        self.clock: RunClock | None = None
        self.ending: BaseException | None = None
        self.has_run = False
        self._runs = 0
        self._outermost: object | None = None  # stands for the run that is not in another
        self.output = outcome.gathered(environment.limits.output_chars)
        self._reason = ""

    @property
    def is_running(self) -> bool:
        """Whether a run is on, in whatever thread."""
        return self._runs > 0

    # -- requests ------------------------------------------------------------------

    def chore(self, header: Mapping[str, Any], parts: Sequence[Any] = ()) -> Frame:
        """Make a request that runs no guest code of itself, on a clock of its own.

        Raises:
            WorkerLost: the worker is late, gone or hostile; it is killed.
        """
        with self.turn:
            seconds = max(CHORES, self._environment.limits.seconds or 60.0)
            outer, self.clock = self.clock, RunClock(seconds, of_guest=False)
            try:
                return self.request(header, parts)
            finally:
                self.clock = outer

    def request(self, header: Mapping[str, Any], parts: Sequence[Any]) -> Frame:
        """Hand the worker the turn until it is done.

        Raises:
            WorkerLost: the worker is late, gone or hostile; it is killed.
        """
        worker = self.worker
        if worker is None:
            raise WorkerLost(self._reason)
        stood = worker.directory is not None and worker.directory.go_on()
        with self._monitor.paused():  # the wait is the host's time, even if guest code made the call
            try:
                worker.channel.send(header, parts, deadline=self._due())
                while True:
                    frame = worker.channel.receive(deadline=self._due())
                    if frame.kind == "done":
                        if stood and not self._runs and worker.directory is not None:
                            worker.directory.stand()
                        return frame
                    if frame.kind == "out":
                        self._print(frame)
                    elif frame.kind == "ask" and (self._runs or is_of_files(frame)):
                        self._answer(worker, frame)
                    else:
                        outcome.refuse(frame)
            except (WorkerGone, TimeoutError, ProtocolError) as error:
                raise self.lose(error) from error
            except KeyboardInterrupt:
                self.lose(WorkerGone("interrupted"))
                raise

    def push_files(self) -> list[str]:
        """Send the worker the files that the host changed; return what to tell guest code of it."""
        worker = self.worker
        if worker is None or worker.directory is None:
            return []
        root = worker.directory.order["path"]

        def send(
            operations: Sequence[tuple[str, str, float]], contents: Sequence[bytes]
        ) -> list[tuple[str, str]]:
            done = self.chore({"k": "files", "root": root, "ops": operations}, contents)
            return self.checked(lambda: _failed(done.header.get("failed"), {each[1] for each in operations}))

        return audit_hook.call_as_host(worker.directory.push, send)  # also where guest code waits for it

    def collect_files(self) -> list[str]:
        """Take over the files that the worker changed; return what to tell guest code of it.

        Raises:
            WorkerLost: the worker does not stop; it is killed.
        """
        if self.worker is None or self.worker.directory is None:
            return []
        try:
            return audit_hook.call_as_host(self.worker.directory.collect, self._report)
        except (TimeoutError, ProtocolError) as error:
            raise self.lose(error) from error

    def _report(self, bounds: Mapping[str, Any]) -> Sequence[memoryview]:
        assert self.worker is not None
        assert self.worker.directory is not None
        root = self.worker.directory.order["path"]
        return self.chore({"k": "report", "root": root, "bounds": bounds}).parts

    def checked(self, work: Callable[[], T]) -> T:
        """Read what the worker sent; a worker that sent what no worker sends is lost.

        Raises:
            WorkerLost: it did.
        """
        try:
            return work()
        except ProtocolError as error:
            raise self.lose(error) from error

    def _due(self) -> float | None:
        if self.clock is None or self.clock.due is None:
            return None
        return self.clock.due + GRACE

    def _print(self, frame: Frame) -> None:
        for part in frame.parts[:1]:
            self.output.write(outcome.text_of(part))

    def _answer(self, worker: WorkerHandle, asked: Frame) -> None:
        """Do what the worker asks for, and send it the outcome."""
        begun, stood = time.monotonic(), self.clock.stood if self.clock is not None else 0.0
        reply: dict[str, Any] = {"k": "reply"}
        packed = Packing(0)
        try:
            with self.turn.lent():  # the host works, and may call guest code, from whatever thread
                packed = self._carry_out(asked, reply)
        except Stop:
            reply["stop"] = True
        if self.worker is not worker:  # it was lost in a call of guest code
            raise WorkerLost(self._reason)
        if self.ending is not None and self._runs:
            reply["stop"] = True
        if self.clock is not None:
            stood = self.clock.stood - stood
        reply["seconds"] = max(time.monotonic() - begun - stood, 0.0)
        reply["v"] = packed.header
        if worker.directory is not None:
            worker.directory.go_on()  # it stood while its files were collected for a command
        worker.channel.send(reply, packed.parts, deadline=self._due())

    # -- runs ----------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self, open_worker: Callable[[], None]) -> Iterator[None]:
        """Start a worker before the clock of a run starts; without one, the run says why."""
        self._reason = ""
        try:
            open_worker()
        except WorkerLost as lost:
            self._reason = str(lost)
        yield

    @contextlib.contextmanager
    def running(self) -> Iterator[bool]:
        """Mark a run. The clock of the outermost one counts for those in it, unless it stands still."""
        limits, outermost = self._environment.limits, self._runs == 0
        outer_output, self.output = self.output, outcome.gathered(limits.output_chars)
        outer_clock = self.clock
        if outermost:
            self.ending = None
            self._outermost = object()
        if outer_clock is None or outer_clock.stands:
            self.clock = RunClock(limits.seconds)
        self._runs += 1
        try:
            with contextlib.nullcontext() if self.clock is None else self.clock.counted():
                yield outermost
        finally:
            self._runs -= 1
            self.output, self.clock = outer_output, outer_clock
            if self._runs == 0:
                self._outermost = None

    def stop(self, ending: BaseException) -> NoReturn:
        """End the run from a host function that guest code called."""
        if self.ending is None:
            self.ending = ending
        raise Stop

    def interrupt(self, ending: BaseException) -> None:
        """End the run from anywhere: at the next stop check of guest code, or by killing its worker."""
        if self.ending is None:
            self.ending = ending
        self._monitor.interrupt(ending)
        worker, run = self.worker, self._outermost
        if worker is None or run is None:
            return
        worker.interrupt()
        timer = threading.Timer(GRACE, self._kill_late, [worker, run])
        timer.daemon = True
        timer.start()

    def _kill_late(self, worker: WorkerHandle, run: object) -> None:
        if self._outermost is run and self.worker is worker:
            worker.terminate()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock of the run stand still while the host works for guest code."""
        clock = self.clock.paused() if self.clock is not None else contextlib.nullcontext()
        with clock, self._monitor.paused():
            yield

    # -- loss ----------------------------------------------------------------------

    def lose(self, error: Exception) -> WorkerLost:
        """Kill the worker; return the error that says why, and what is left."""
        worker, self.worker = self.worker, None
        if self.has_run and worker is not None and worker.directory is not None:
            audit_hook.call_as_host(worker.directory.take_back)
        self.has_run = False
        ended = worker.kill() if worker is not None else "it was ended before"
        lost = WorkerLost(outcome.lost_because(error, ended, self.clock))
        self._reason = str(lost)
        if isinstance(ended, OutOfMemory):
            lost.memory = ended
        lost.was_killed = ended in _FROM_OUTSIDE and not isinstance(error, TimeoutError | ProtocolError)
        return lost

    def drop_ended(self) -> None:
        """Drop a worker that ended between two runs: the host has all that it knew."""
        if self.worker is not None and not self.has_run and self.worker.has_ended():
            self.lose(EOFError("it ended between two runs"))
            self._reason = ""

    def close(self) -> None:
        """End the worker, if there is one."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None


def _failed(told: Any, sent: set[str]) -> list[tuple[str, str]]:
    """Read which changes of files a worker could not make.

    Raises:
        ProtocolError: no worker says that.
    """
    if not isinstance(told, list) or not all(
        isinstance(each, list) and len(each) == 2 and each[0] in sent and isinstance(each[1], str)
        for each in told
    ):
        raise ProtocolError("the worker says of files what no worker says")
    return [(path, reason[:200]) for path, reason in told]


def is_of_files(asked: Frame) -> bool:
    """Return whether a worker asks for work on files."""
    return asked.header.get("what") == "file"
