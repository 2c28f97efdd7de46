"""One run of guest code: what it sets up, how it ends, and what it puts back.

A run sets up, in this order:

1. the flag that its stop checks read, the closing of asynchronous generators, the routing of ``sys.stdout``;
2. for the outermost run of a session: the methods of guest classes, what was registered since the last run,
   the callbacks of the collector, the settings of the process;
3. limits of memory and open files, the decimal context, and the variables of the context: from there on the
   context is that of guest code;
4. the files of the workspace, and the clock.

All of it is put back however the run ends: by a limit that strikes anywhere, without room on the stack, and
where another context or thread drops the run.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import types
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Token, copy_context
from typing import Any, NoReturn

from agex._interpreter.type_slots import name_of
from agex.errors import EvalError, SandboxError
from agex.sandbox.classes.host_calls import Hooks
from agex.sandbox.guards.guards import Guards
from agex.sandbox.libraries import process_state
from agex.sandbox.libraries.session_settings import SessionSettings
from agex.sandbox.patches.install import install
from agex.sandbox.patches.threading import THREADED, end_elsewhere
from agex.sandbox.policy.advice import explained, refused_member
from agex.sandbox.policy.policy import Policy
from agex.sandbox.runtime import audit_hook
from agex.sandbox.runtime.asyncio_cleanup import end_callbacks, in_new_loop, watch_generators
from agex.sandbox.runtime.context import CURRENT, RUNS, as_host
from agex.sandbox.runtime.deadline import RUNNING, Deadline
from agex.sandbox.runtime.host_time import host_works
from agex.sandbox.runtime.kill_switch import builtins_inside
from agex.sandbox.runtime.limits import Limits, Stop, require_limits, require_room, resource_limits
from agex.sandbox.runtime.output import CAPTURE, Output, capture_stdout, release_stdout
from agex.sandbox.runtime.provenance import session_in
from agex.sandbox.runtime.result import Enforcement, Result, enforced
from agex.sandbox.stdlib.traceback import Blank, format_error

__all__ = ["Runner"]


class _Run:
    """One run, and what it found in force."""

    is_begun = False
    """Whether the decimal context of guest code is in force, in place of that of the host."""
    decimals: Any = None
    """The decimal context that is not in force."""
    tokens: tuple[Token[Any], Token[Any], Token[Any]] | None = None
    """Sets the variables of the context back."""
    process: process_state.SavedSettings | None = None
    """The settings of the process, where the policy grants what may change them."""
    outer: Deadline | None = None
    """The deadline of the run around this one."""
    _watch: Deadline | None = None

    def __init__(
        self,
        limits: Limits,
        output: Callable[[int], Output],
        expire: Callable[[], None],
        *,
        raises: bool,
        host_works: Callable[[int], bool] | None = None,
    ) -> None:
        self.result = Result()
        self.output = output(limits.output_chars)
        self.deadline = Deadline(limits.seconds, expire, raises=raises, host_works=host_works)
        self._expire = expire
        if self.deadline.by_signal and THREADED in sys.modules:
            self._watch = Deadline(limits.seconds, self._end_unmet, raises=False, host_works=host_works)
        self.resources = resource_limits(limits)
        self._floats = process_state.float_settings()
        self.start = time.perf_counter()

    def start_clock(self) -> None:
        """Start to count the time that guest code takes."""
        self.deadline.start()
        if self._watch is not None:
            self._watch.start()

    def _stop_clock(self) -> None:
        self.deadline.cancel()
        watch, self._watch = self._watch, None  # it refers to this run, which would live on with it
        if watch is not None:
            watch.cancel()

    def _end_unmet(self) -> None:
        """End a run whose thread meets no signal, because it waits in compiled code for other threads."""
        if self.deadline.active and time.monotonic() - self.deadline.due > _UNMET:
            self._expire()

    def ease(self) -> None:
        """Stop the clock: the guest code is over."""
        self.resources.ease()
        self._stop_clock()

    def lift(self) -> None:
        """Lift all limits; may be called again."""
        self._stop_clock()
        self.resources.end()

    def put_back(self) -> None:
        """Put back what this run found.

        Raises:
            ValueError: the run was dropped, and this is not its own context. The context stays as it is, for
                it may be that of another run.
        """
        try:
            process_state.restore_float_settings(self._floats)
        finally:
            try:
                if self.tokens is not None:
                    capture, guest, permissions = self.tokens
                    audit_hook.PERMISSIONS.reset(permissions)
                    CURRENT.reset(guest)
                    CAPTURE.reset(capture)
            finally:
                if self.is_begun:
                    self.decimals = process_state.give_decimals_back(self.decimals)
                self.resources.end()


_UNMET = 0.1
"""Seconds after which a signal that was due has met no Python code."""


class Runner:
    """Runs guest code under one policy and limits, one run at a time or one within another.

    Args:
        policy: decides what guest code may reach.
        limits: of each run.
        output: makes what a run prints to, from the number of characters that it keeps.
    """

    serves = False
    """Whether this session does work of the host for guest code that runs elsewhere."""

    has_host_elsewhere = False
    """Whether the host works in another process: what it changes in its own does not concern this one."""

    def __init__(self, policy: Policy, limits: Limits, output: Callable[[int], Output]) -> None:
        require_limits(limits)
        install()
        process_state.keep_functions(policy)
        self._policy = policy
        self._limits = limits
        self._output = output
        self._hooks = Hooks(self._answer)
        self._guards = Guards(policy, self._hooks, self._trip, self._caught)
        self._builtins, self._switch = self._guards.builtins, self._guards.switch
        self._sources = self._guards.sources
        self._ending: BaseException | None = None
        self._deadline: Deadline | None = None
        self._decimals: Any = None
        self._thread = 0  # the one that runs
        self._base: types.FrameType | None = None  # where the outermost run begins
        self._stopped: list[Runner] = []  # others that were stopped with this one
        self._settings = SessionSettings()
        self._runs = 0  # nested: a host function that guest code called may call guest code
        self._raises = True  # whether a deadline may raise in this thread: not beside an event loop
        self.globals: dict[str, Any] = {
            "__name__": self._guards.classes.module_name,
            "__doc__": None,
            "__builtins__": self._builtins,
        }

    @property
    def namespace(self) -> dict[str, Any]:
        """The variables of guest code: neither helpers nor what `Session.bind` gave, unless rebound."""
        return {k: v for k, v in self.globals.items() if "!" not in k and k not in _MODULE_NAMES}

    @property
    def is_running(self) -> bool:
        """Whether a run is on, in any thread."""
        return self._runs > 0

    def note_file(self, name: str, source: str) -> None:
        """Keep the lines of a program for tracebacks that guest code and its model see."""
        self._sources[name] = source.splitlines()

    # -- ending a run --------------------------------------------------------------

    def stop(self, ending: BaseException) -> NoReturn:
        """End the run from a host function that guest code called; the result carries *ending*."""
        self.interrupt(ending)
        raise Stop

    def interrupt(self, ending: BaseException) -> None:
        """End the run from any thread, at its next stop check."""
        if self._ending is None:
            self._ending = ending
        self._switch.turn_on()
        self._stop_others()

    def expire(self) -> None:
        """End the run for the time that it took."""
        seconds = self._limits.seconds
        self.interrupt(TimeoutError(f"the code ran longer than {seconds:g} s; do less in one step"))

    def _stop_others(self) -> None:
        """Stop code of other sessions that this run has called: functions that an earlier task left."""
        base = self._base
        for builtins in [] if base is None else builtins_inside(self._thread, base):
            other = session_in(builtins) if builtins.get("stop!") is RUNNING else None
            if isinstance(other, Runner):
                other._switch.turn_on()
                self._stopped.append(other)

    def _release_others(self) -> None:
        while self._stopped:
            other = self._stopped.pop()
            if not other.is_running or other._ending is None:  # else it is to stop for a reason of its own
                other._switch.turn_off()

    def _trip(self) -> NoReturn:
        raise Stop

    def _caught(self) -> None:
        """Check the head of a handler that catches more than errors."""
        if self._builtins["stop!"]:
            raise Stop
        error = sys.exc_info()[1]
        if isinstance(error, KeyboardInterrupt):
            self.interrupt(error)
            raise error
        if type(error) is AttributeError and (text := refused_member(error)) is not None:
            error.args = (text,)  # the text that the handler may print; the class stays the one raised

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the clock of the run while the host works for guest code."""
        require_room()
        deadline = self._deadline
        try:
            if deadline is not None:
                deadline.pause()
            capture = CAPTURE.set(None)
            try:
                with (
                    contextlib.nullcontext() if self.has_host_elsewhere else process_state.staying(),
                    as_host(),
                    audit_hook.without_workspace(),
                    self._hooks.paused(self._guards.classes.made()),
                ):
                    yield
            finally:
                CAPTURE.reset(capture)
        finally:
            if deadline is not None:
                deadline.resume()  # at last: it may strike at once

    def charge(self, seconds: float) -> None:
        """Take seconds off the paused clock of the run: the host used them elsewhere."""
        if self._deadline is not None:
            self._deadline.charge(seconds)

    # -- a run ---------------------------------------------------------------------

    def _guarded(self, work: Callable[[Result], None]) -> Result:
        """Run guest code in this thread.

        While the host handles an error, every error of guest code would have it as its context.
        """
        if sys.exc_info()[1] is None or self._runs:
            return self._guarded_alone(work)
        try:
            Blank.happen()
        except Blank as blank:
            blank.__context__ = blank.__traceback__ = None
            return self._guarded_alone(work)

    def _guarded_alone(self, work: Callable[[Result], None]) -> Result:
        run = self._prepare(raises=True)
        try:
            self._begin(run)
            with self._own_files():
                self._guards.run = self._guards.run or copy_context()
                try:
                    try:
                        run.start_clock()
                        work(run.result)
                    finally:
                        run.ease()
                except BaseException as error:  # noqa: BLE001 - guest code may raise anything; settled by class
                    run.lift()  # an alarm may have struck on the way out
                    self._settle(run.result, error)
                self._settle_swallowed(run.result)
        finally:
            self._end(run)
        return run.result

    def run_coroutine(self, coro: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine of guest code to its end, in an event loop of its own.

        The clock of the run around it stands still meanwhile, for its strike could meet the loop. The rest
        of it is the limit here, which ends guest code as it does beside an event loop.
        """
        deadline, around = self._deadline, CAPTURE.get()
        before, raises = self._ending, self._raises
        limits = self._limits
        if deadline is not None:
            deadline.pause()
            limits = limits._replace(seconds=deadline.left)
        start = time.perf_counter()
        try:
            with as_host(), audit_hook.without_workspace(), self._hooks.paused(self._guards.classes.made()):
                result, ended = in_new_loop(lambda: self._whole(coro, limits, around))
        finally:
            self._raises, self._ending = raises, before or self._ending
            if deadline is not None:
                deadline.charge(time.perf_counter() - start)
                deadline.resume()  # it may strike at once
        if self._ending is not None:
            self.stop(self._ending)
        if ended is not None:
            raise ended
        if result.error is not None:
            raise result.error
        return result.value

    async def _whole(
        self, coro: Coroutine[Any, Any, Any], limits: Limits, output: Any
    ) -> tuple[Result, SystemExit | None]:
        """Run a coroutine and the tasks that it leaves, within the run of this session."""
        from agex.sandbox.stdlib.asyncio_tasks import end_tasks

        exits: list[SystemExit] = []

        async def work(result: Result) -> None:
            try:
                result.value = await coro
            except SystemExit as error:  # it ends the program around, not this loop
                exits.append(error)
            finally:
                await end_tasks(self._guards)

        result = await self._aguarded(work, limits, output)
        return result, exits.pop() if exits else None

    async def _aguarded(
        self, work: Callable[[Result], Any], limits: Limits | None = None, output: Any = None
    ) -> Result:
        """Run guest code in the caller's event loop."""
        import asyncio  # takes longer than the rest of this room, and synchronous hosts do without

        from agex.sandbox.stdlib.asyncio_tasks import end_tasks, run_apart

        async def guest() -> None:
            if self._runs == 1:
                self._base = sys._getframe()  # pyright: ignore[reportPrivateUsage] - its task begins here
            await work(run.result)

        limits = self._limits if limits is None else limits
        run = self._prepare(raises=False, limits=limits)
        if output is not None:
            run.output = output
        try:
            self._begin(run)
            with self._own_files(), self._hooks.waiting(self._guards.classes.made):
                self._guards.run = self._guards.run or copy_context()
                try:
                    try:
                        run.start_clock()
                        await run_apart(self._guards, guest, limits.seconds, self.expire)
                    finally:
                        try:
                            if self._runs == 1:  # else the run around this one ends them, with its own
                                await end_tasks(self._guards)
                        finally:
                            run.ease()
                except BaseException as error:
                    task = asyncio.current_task()
                    if type(error) is asyncio.CancelledError and task is not None and task.cancelling():
                        raise  # the host cancelled; guest code did not raise it by itself
                    run.lift()
                    self._settle(run.result, error)
                self._settle_swallowed(run.result)
        finally:
            self._end(run)
        return run.result

    def _prepare(self, *, raises: bool, limits: Limits | None = None) -> _Run:
        """Note what is in force, for a run that is about to begin. The caller ends it with `_end`."""
        require_room()
        looks = host_works if self._policy.has_host_time or self.serves else None
        limits = self._limits if limits is None else limits
        run = _Run(limits, self._output, self.expire, raises=raises, host_works=looks)
        run.outer, self._deadline = self._deadline, run.deadline
        self._raises = raises
        self._ending = None
        self._switch.turn_off()
        if sys.get_asyncgen_hooks().firstiter is not None:  # an event loop runs in this thread
            watch_generators()
        capture_stdout()
        return run

    def _begin(self, run: _Run) -> None:
        self._runs += 1  # at first: `_end` undoes it if anything below fails
        if self._runs == 1:
            RUNS.add(self._guards)
            self._hooks.open()
            self._guards.renew()
            process_state.release_callbacks()
            self._thread = threading.get_ident()
            # Past this method: `_guarded`, or another that runs begin in.
            self._base = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            if process_state.may_change(self._policy):
                run.process = process_state.hold()
            if self._policy.covers("numpy") or run.process is not None:
                self._settings.begin(run.process)
        run.resources.begin()
        # From here the context is that of guest code: output is caught, and the audit hook permits nothing.
        run.decimals = process_state.take_decimals(self._decimals)
        run.is_begun = True
        run.tokens = (
            CAPTURE.set(run.output),
            CURRENT.set(self._guards),
            audit_hook.PERMISSIONS.set(audit_hook.NO_PERMISSIONS),
        )

    def _end(self, run: _Run) -> None:
        """Put back all that `_prepare` and `_begin` set, and complete the result."""
        result = run.result
        try:
            if self._runs == 1:
                self._settings.keep_of_context()
            run.put_back()
        finally:
            if run.is_begun:
                self._decimals = run.decimals
            result.enforcement = self._enforcement(run.deadline)
            self._deadline = run.outer
            try:
                self._leave()
            finally:
                release_stdout()
                self._switch.turn_off()
                self._release_others()
                if run.process is not None:
                    is_unchanged = run.process.is_unchanged()
                    self._settings.keep(is_unchanged)
                    run.process.put_back(is_unchanged)
            result.duration = time.perf_counter() - run.start
            result.stdout = run.output.text()
            result.namespace = self.namespace

    def _leave(self) -> None:
        self._runs -= 1
        if self._runs == 0:
            RUNS.discard(self._guards)
            self._base, self._guards.run = None, None
            if self._guards.threads:
                self._switch.turn_on()
                end_elsewhere(self._guards)
            if self._guards.notes:
                end_callbacks(self._guards)
            self._hooks.shut(self._guards.classes.made())

    def _own_files(self) -> contextlib.AbstractContextManager[None]:
        """Let libraries open the files of the workspace, if there is one."""
        if self._guards.files is None:
            return audit_hook.without_workspace()
        from agex.sandbox.runtime.workspace_files import inside

        return inside(self._guards.files)

    def _enforcement(self, deadline: Deadline) -> Enforcement:
        how = "none" if self._limits.seconds is None else "signal" if deadline.by_signal else "flag"
        return enforced("none", how, self._limits.memory_mb is not None)

    def _answer(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of a guest class for host code that did not ask for it by name."""
        if self._runs and CURRENT.get() is not None:
            return method(*args, **kwargs)  # guest code calls it, within limits
        before, raises = self._ending, self._raises

        def work(result: Result) -> None:
            result.value = method(*args, **kwargs)

        result = self._guarded(work)
        if self._runs:  # the host works within a run, which is to end as it was to
            self._raises, self._ending = raises, before or result.stopped
            if self._ending is not None:
                self.interrupt(self._ending)
        if result.stopped is not None:
            raise SandboxError(f"{method.__qualname__} tried to end a task that is over") from result.stopped
        if result.error is not None:
            raise result.error
        return result.value

    # -- the exception that ended a run --------------------------------------------

    def _settle_swallowed(self, result: Result) -> None:
        """Settle an ending that guest code swallowed."""
        if self._ending is not None and result.error is None and result.stopped is None:
            self._settle(result, Stop())

    def _settle(self, result: Result, error: BaseException) -> None:
        """Put the exception that ended the run into the result, or raise it to the host.

        The limits of the run are off here, so only the class of the exception is looked at: isinstance()
        would ask for ``__class__``, which may be guest code.
        """
        ending = self._ending
        kind = type(error)
        if ending is not None:
            result.value, result.echo = None, None
            if isinstance(ending, KeyboardInterrupt):
                raise ending
            if isinstance(ending, TimeoutError):
                self._fail(result, _wrapped(ending), error)
            else:
                result.stopped = ending
        elif issubclass(kind, Stop | KeyboardInterrupt):
            raise error  # of another session or of the host
        elif issubclass(kind, MemoryError):
            self._fail(result, _wrapped(error), error)
        elif issubclass(kind, Exception):
            told: Any = explained(error) if type(error) is AttributeError else error
            self._fail(result, told, error)
        else:
            refusal = SandboxError(
                f"{name_of(kind)} is not available to end a program; return or raise an Exception"
            )
            refusal.__cause__ = error
            self._fail(result, refusal, error)

    def _fail(self, result: Result, error: Exception, raised: BaseException) -> None:
        result.error = error
        shown = BaseException.with_traceback(error, _TRACEBACK(raised))
        deadline = Deadline(_TEXT_SECONDS, self._switch.turn_on, raises=self._raises)
        try:
            try:
                with resource_limits(self._limits, of_text=True):
                    deadline.start()
                    result.traceback = format_error(shown, self._builtins, self._sources)
            finally:
                deadline.cancel()
        except BaseException as broken:  # noqa: BLE001 - a guest class may define __str__
            deadline.cancel()
            result.traceback = (
                f"{name_of(type(error))}: (its text could not be made: {name_of(type(broken))})"
            )


_MODULE_NAMES = frozenset(
    {"__name__", "__doc__", "__builtins__", "__annotations__", "__conditional_annotations__"}
)

_TEXT_SECONDS = 1.0
"""Seconds for the text of an error: a guest class may define ``__str__``, and its own time is over."""

_TRACEBACK: Callable[[BaseException], types.TracebackType | None] = vars(BaseException)[
    "__traceback__"
].__get__


def _wrapped(cause: BaseException) -> EvalError:
    # A subclass of MemoryError may be a guest class: its __str__ and its hash would be guest code.
    is_plain = type(cause) is MemoryError or type(cause) is TimeoutError
    said = str(cause) if is_plain and _says_text(cause) else ""
    error = EvalError(f"{name_of(type(cause))}: {said or 'out of memory; process the data in smaller parts'}")
    error.__cause__ = cause
    return error


def _says_text(error: BaseException) -> bool:
    return all(type(arg) is str for arg in error.args)
