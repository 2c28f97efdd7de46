"""One namespace in which guest code runs, as often as wanted."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NoReturn

from agex._interpreter.type_slots import name_of
from agex.errors import EvalError, SandboxError
from agex.sandbox.classes.host_calls import Hooks
from agex.sandbox.guards.guards import Guards
from agex.sandbox.language.compiler import compile_module
from agex.sandbox.libraries import process_state
from agex.sandbox.module_variables import Modules
from agex.sandbox.patches.install import install
from agex.sandbox.patches.threading import end_elsewhere
from agex.sandbox.policy import library_classes
from agex.sandbox.policy.module_grant import explained, refused_member
from agex.sandbox.policy.policy import Policy
from agex.sandbox.rules.ruleset import Rules
from agex.sandbox.run import Run
from agex.sandbox.runtime import audit_hook as wall
from agex.sandbox.runtime import float_state as floating
from agex.sandbox.runtime.asyncio_cleanup import end_callbacks
from agex.sandbox.runtime.closing import watch_generators
from agex.sandbox.runtime.collecting import release_callbacks
from agex.sandbox.runtime.context import CURRENT, RUNS, as_host
from agex.sandbox.runtime.echo import echo_text
from agex.sandbox.runtime.headroom import require_room
from agex.sandbox.runtime.host_time import host_works
from agex.sandbox.runtime.limits import RUNNING, Deadline, Limits, Stop, require_limits
from agex.sandbox.runtime.output import CAPTURE, Output, capture_stdout, release_stdout
from agex.sandbox.runtime.provenance import session_in
from agex.sandbox.runtime.resource_limits import resource_limits
from agex.sandbox.runtime.result import Enforcement, Result, enforced
from agex.sandbox.runtime.scopes import defined_in, is_bindable
from agex.sandbox.runtime.stacks import builtins_inside
from agex.sandbox.stdlib.traceback import format_error

if TYPE_CHECKING:
    from agex.sandbox.guards.import_statement import Importer
    from agex.sandbox.runtime.workspace_files import Files, GuestFiles

__all__ = ["Session"]


class Session:
    """A namespace, its guards and its limits.

    Functions of an earlier run see the variables of a later one, as in a REPL. A session
    is for one thread at a time; `interrupt` may be called from any.
    """

    serves = False  # guest code elsewhere, with what the host does
    packs = False
    """Whether variables are given back as `agex.values.Packed`: the objects themselves are here."""

    def __init__(
        self,
        policy: Policy,
        limits: Limits,
        namespace: Mapping[str, Any],
        *,
        files: Files | None = None,
        output: Callable[[int], Output] = Output,
    ) -> None:
        require_limits(limits)
        install()
        self._policy = policy
        self._limits = limits
        self._output = output
        self.files = files
        """The workspace, as the host gave it."""
        process_state.keep_functions(policy)
        self._hooks = Hooks(self._answer)
        self._guards = Guards(policy, self._hooks, self._trip, self._caught)
        self._builtins, self._switch = self._guards.builtins, self._guards.switch
        self._sources = self._guards.sources
        self._ending: BaseException | None = None
        self._deadline: Deadline | None = None
        self._decimals: Any = None
        self._modules = Modules(self, self._guards)
        self._thread = 0  # the one that runs
        self._base: types.FrameType | None = None  # where the outermost run begins
        self._stopped: list[Session] = []  # others that were stopped with this one
        self._runs = 0  # nested: a host function that the guest called may call the guest
        self._raises = True  # whether a deadline may raise in this thread: not beside an event loop
        self.globals: dict[str, Any] = {
            "__name__": self._guards.classes.module_name,
            "__doc__": None,
            "__builtins__": self._builtins,
        }
        self.add(namespace)
        if files is not None:
            from agex.sandbox.runtime.workspace_files import outside

            self._guards.use_files(files, outside, self._compile_file)

    def open(self) -> None:
        """Do nothing: it is open."""

    def close(self) -> None:
        """Do nothing: a session in this process ends with the last that refers to it."""

    # -- names ---------------------------------------------------------------------

    @property
    def kept(self) -> dict[str, Any]:
        """What was bound to be given back: nothing, as the objects themselves are here."""
        return {}

    @property
    def namespace(self) -> dict[str, Any]:
        """The guest's own names: neither helpers nor what `bind` gave, unless rebound."""
        return {k: v for k, v in self.globals.items() if "!" not in k and k not in _MODULE_NAMES}

    def bind(self, name: str, value: Any) -> None:
        """Give the guest a name, as a builtin is: it can be shadowed and is not part of `namespace`."""
        self._check_name(name)
        self._builtins[name] = self._guards.shown(value)

    def _check_name(self, name: str) -> None:
        if not is_bindable(name):
            raise SandboxError(f"{name!r} cannot be a variable of guest code; choose another name")

    @property
    def defined(self) -> frozenset[str]:
        """Names that the last run bound by ``def`` or ``class`` at its top level."""
        program = self._guards.program
        return frozenset() if program is None else frozenset(defined_in(program))

    @property
    def guest_files(self) -> GuestFiles | None:
        """The workspace as the guest has it."""
        return self._guards.files

    @property
    def builtins(self) -> Mapping[str, Any]:
        """What the guest finds under a name that is none of its own variables."""
        return self._builtins

    @property
    def is_running(self) -> bool:
        """Whether a run is on, in whatever thread."""
        return self._runs > 0

    def add(self, names: Mapping[str, Any]) -> None:
        """Give the guest variables."""
        for name, value in names.items():
            self._check_name(name)
            self.globals[name] = self._guards.shown(value)

    def look_up(self, name: str) -> Any:
        """Return a variable of the guest; None where there is none."""
        return self.namespace.get(name)

    def imported(self, name: str, *, run: bool = False) -> Any:
        """Return a module as the guest gets it, see `Modules.imported`."""
        return self._modules.imported(name, run=run)

    @property
    def modules(self) -> dict[str, str]:
        """The variables that are modules, each with what to import for it."""
        return self._modules.bound()

    def import_again(self, modules: Mapping[str, str]) -> None:
        """Bind variables to modules as an earlier session had them, under the grants of this one."""
        self._modules.restore(modules)

    @property
    def importer(self) -> Importer:
        """Finds the modules of the guest."""
        return self._guards.importer

    def is_guest_function(self, value: object) -> bool:
        """Tell whether *value* is a function that the guest wrote."""
        return self._guards.is_guest_function(value)

    # -- ending a run --------------------------------------------------------------

    def stop(self, ending: BaseException) -> NoReturn:
        """End the run from a host function that the guest called; the result carries *ending*."""
        self.interrupt(ending)
        raise Stop

    def interrupt(self, ending: BaseException) -> None:
        """End the run from anywhere: at the guest's next stop check."""
        if self._ending is None:
            self._ending = ending
        self._switch.turn_on()
        self._stop_others()

    def _stop_others(self) -> None:
        """Stop code of other sessions that this run has called: functions that an earlier task left."""
        base = self._base
        for builtins in [] if base is None else builtins_inside(self._thread, base):
            other = session_in(builtins) if builtins.get("stop!") is RUNNING else None
            if isinstance(other, Session):
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
        """Stand at the head of a handler that catches more than errors."""
        if self._builtins["stop!"]:
            raise Stop
        error = sys.exc_info()[1]
        if isinstance(error, KeyboardInterrupt):
            self.interrupt(error)
            raise error
        if type(error) is AttributeError and (text := refused_member(error)) is not None:
            error.args = (text,)  # what the handler may print; the class is the one that was raised

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock of the run stand still while the host works for the guest."""
        require_room()
        deadline = self._deadline
        try:
            if deadline is not None:
                deadline.pause()
            capture = CAPTURE.set(None)
            try:
                with (
                    process_state.staying(),
                    as_host(),
                    wall.without_workspace(),
                    self._hooks.paused(self._guards.classes.made()),
                ):
                    yield
            finally:
                CAPTURE.reset(capture)
        finally:
            if deadline is not None:
                deadline.resume()  # at last: it may strike at once

    def charge(self, seconds: float) -> None:
        """Take seconds off the clock of the run while it stands still: the host used them elsewhere."""
        if self._deadline is not None:
            self._deadline.charge(seconds)

    # -- running -------------------------------------------------------------------

    def run(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Run a program. Whatever the guest does is in the result; nothing of it is raised."""

        def work(result: Result) -> None:
            exec(self._compile(source, filename, self._policy.text, echo=echo), self.globals)  # noqa: S102 - rewritten code
            self._take_value(result)

        return self._guarded(work)

    async def arun(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result:
        """Like `run`, with ``await`` allowed at the top level, in the caller's event loop."""

        async def work(result: Result) -> None:
            code = self._compile(source, filename, self._policy.text, echo=echo, top_level_await=True)
            value = eval(code, self.globals)  # noqa: S307 - rewritten code
            if isinstance(value, types.CoroutineType):
                await value
            self._take_value(result)

        return await self._aguarded(work)

    def define(self, source: str, filename: str, namespace: dict[str, Any], *, main: bool = False) -> Result:
        """Run a program in a namespace apart from the session's: what it defines there is the guest's.

        With *main* it is a program of its own, whose definitions are none of the session's.
        """

        def work(result: Result) -> None:
            namespace.update(__builtins__=self._builtins, __name__=self.globals["__name__"])
            if main:
                code = self._compile_file(source, filename)
            else:
                code = self._compile(source, filename, self._policy.text._replace(lists=False), echo=False)
            exec(code, namespace)  # noqa: S102 - rewritten code

        return self._guarded(work)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Call what the guest made, under the same limits."""

        def work(result: Result) -> None:
            result.value = function(*args, **kwargs)

        return self._guarded(work)

    async def acall(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Like `call`; an awaitable that the function gives back is awaited."""
        import inspect

        async def work(result: Result) -> None:
            value = function(*args, **kwargs)
            result.value = await value if inspect.isawaitable(value) else value

        return await self._aguarded(work)

    def _compile(
        self, source: str, filename: str, rules: Rules, *, echo: bool, top_level_await: bool = False
    ) -> types.CodeType:
        self._sources[filename] = source.splitlines()
        code = compile_module(source, filename, rules, echo=echo, flat=True, top_level_await=top_level_await)
        self._guards.program = code
        return code

    def _compile_file(self, source: str, filename: str) -> types.CodeType:
        self._sources[filename] = source.splitlines()
        return compile_module(source, filename, self._policy.text, echo=False, flat=True)

    def _take_value(self, result: Result) -> None:
        result.value = self.globals.pop("value!", None)
        if result.value is not None:
            result.echo = echo_text(result.value, self._limits.output_chars)

    def _guarded(self, work: Callable[[Result], None]) -> Result:
        run = self._prepared(raises=True)
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
                except BaseException as error:  # noqa: BLE001 - whatever a guest raises; settled by kind
                    run.end()  # an alarm may have struck on the way out
                    self._settle(run.result, error)
                self._settle_swallowed(run.result)
        finally:
            self._end(run)
        return run.result

    async def _aguarded(self, work: Callable[[Result], Any]) -> Result:
        import asyncio  # takes longer than the rest of this room, and synchronous hosts do without

        from agex.sandbox.stdlib.asyncio_tasks import end_tasks, run_apart

        async def guest() -> None:
            if self._runs == 1:
                self._base = sys._getframe()  # pyright: ignore[reportPrivateUsage] - its task begins here
            await work(run.result)

        run = self._prepared(raises=False)
        try:
            self._begin(run)
            with self._own_files(), self._hooks.waiting(self._guards.classes.made):
                self._guards.run = self._guards.run or copy_context()
                try:
                    try:
                        run.start_clock()
                        await run_apart(self._guards, guest, self._limits.seconds, self.expire)
                    finally:
                        try:
                            if self._runs == 1:  # else the run around this one ends them, with its own
                                await end_tasks(self._guards)
                        finally:
                            run.ease()
                except BaseException as error:
                    task = asyncio.current_task()
                    if type(error) is asyncio.CancelledError and task is not None and task.cancelling():
                        raise  # it was the host that cancelled, not the guest that said so
                    run.end()
                    self._settle(run.result, error)
                self._settle_swallowed(run.result)
        finally:
            self._end(run)
        return run.result

    def _prepared(self, *, raises: bool) -> Run:
        """Note what is in force, for a run that is about to begin: whoever asks ends it, see `_end`."""
        require_room()
        looks = host_works if self._policy.has_host_time or self.serves else None
        run = Run(self._limits, self._output, self.expire, raises=raises, host_works=looks)
        run.outer, self._deadline = self._deadline, run.deadline
        self._raises = raises
        self._ending = None
        self._switch.turn_off()
        watch_generators()
        capture_stdout()
        return run

    def _begin(self, run: Run) -> None:
        self._runs += 1  # at first: whatever fails below, `_end` undoes it
        if self._runs == 1:
            RUNS.add(self._guards)
            self._hooks.open()
            self._guards.renew()
            release_callbacks()
            self._thread = threading.get_ident()
            # Past this method: `_guarded`, or another that runs begin in.
            self._base = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            if process_state.may_change(self._policy):
                run.process = process_state.hold()
        run.held.begin()
        # This context is the guest's from here: output is caught, the second wall stands, shut.
        run.decimals = floating.take_decimals(self._decimals)
        run.is_begun = True
        run.tokens = CAPTURE.set(run.output), CURRENT.set(self._guards), wall.DOORS.set(wall.SHUT)

    def _end(self, run: Run) -> None:
        """Put back all that `_prepared` noted, and fill in what every result says."""
        result = run.result
        try:
            run.give_back()
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
                    run.process.put_back()
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
            end_callbacks(self._guards)
            self._hooks.shut(self._guards.classes.made())

    def store_on_class(self, class_: type, name: str, value: Any) -> None:
        """Give a class of the guest an attribute that its code gave it after the class statement."""
        library_classes.check_stored(class_, name, value)
        self._guards.alter(class_, name)
        type.__setattr__(class_, name, value)
        self._hooks.stored(class_, name, value)

    def _answer(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the guest's for host code that did not ask for it by name."""
        if self._runs and CURRENT.get() is not None:
            return method(*args, **kwargs)  # it is a guest's code that asks, within limits
        before, raises = self._ending, self._raises
        result = self.call(method, *args, **kwargs)
        if self._runs:  # the host works within a run, which is to end as it was to
            self._raises, self._ending = raises, before or result.stopped
            if self._ending is not None:
                self.interrupt(self._ending)
        if result.stopped is not None:
            raise SandboxError(f"{method.__qualname__} tried to end a task that is over") from result.stopped
        if result.error is not None:
            raise result.error
        return result.value

    def _own_files(self) -> contextlib.AbstractContextManager[None]:
        """Have libraries meet the guest's workspace, if it has one."""
        if self._guards.files is None:
            return wall.without_workspace()
        from agex.sandbox.runtime.workspace_files import inside

        return inside(self._guards.files)

    def _settle_swallowed(self, result: Result) -> None:
        if self._ending is not None and result.error is None and result.stopped is None:
            self._settle(result, Stop())

    def _enforcement(self, deadline: Deadline) -> Enforcement:
        how = "none" if self._limits.seconds is None else "signal" if deadline.by_signal else "flag"
        return enforced("none", how, self._limits.memory_mb is not None)

    def expire(self) -> None:
        """End the run for the time that it took."""
        seconds = self._limits.seconds
        self.interrupt(TimeoutError(f"the code ran longer than {seconds:g} s; do less in one step"))

    # -- settling ------------------------------------------------------------------

    def _settle(self, result: Result, error: BaseException) -> None:
        """Put an exception that ended the run where it belongs, or raise it to the host.

        The guest's limits are off here, so nothing may be asked of the exception but its class:
        isinstance() would ask for ``__class__``, which the guest may have written.
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
        except BaseException as broken:  # noqa: BLE001 - the guest's own __str__ may do anything
            deadline.cancel()
            result.traceback = (
                f"{name_of(type(error))}: (its text could not be made: {name_of(type(broken))})"
            )


_TEXT_SECONDS = 1.0
"""What the text of an error may take: the guest writes ``__str__``, after its own time is over."""

_MODULE_NAMES = frozenset(
    {"__name__", "__doc__", "__builtins__", "__annotations__", "__conditional_annotations__"}
)

_TRACEBACK: Callable[[BaseException], types.TracebackType | None] = vars(BaseException)[
    "__traceback__"
].__get__


def _wrapped(cause: BaseException) -> EvalError:
    # The text of the guest's own kind of MemoryError is the guest's code, and so is the hash of its class.
    is_plain = type(cause) is MemoryError or type(cause) is TimeoutError
    said = str(cause) if is_plain and _says_text(cause) else ""
    error = EvalError(f"{name_of(type(cause))}: {said or 'out of memory; process the data in smaller parts'}")
    error.__cause__ = cause
    return error


def _says_text(error: BaseException) -> bool:
    return all(type(arg) is str for arg in error.args)
