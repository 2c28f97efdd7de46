"""Full Python: the session of a worker whose code is CPython's own, without guards.

The boundary is the process and what the kernel allows it. Nothing here protects anything from guest code,
which may change this module, too. What it is for is that code finds what a notebook has: real builtins, all
installed packages, threads, its source in tracebacks and `inspect`.

It has the methods of `agex.sandbox.Session` that a `WorkerServer` uses.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import ctypes
import functools
import importlib
import inspect
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from agex.errors import EvalError, SandboxError
from agex.files import connect_fs
from agex.isolation.worker.full_code import ClassStatements
from agex.isolation.worker.full_programs import Programs
from agex.isolation.worker.guest_streams import CapturedDescriptors, use_streams
from agex.isolation.worker.own_modules import OwnModules
from agex.isolation.worker.soft_deadline import SoftDeadline
from agex.sandbox import Limits, Policy, Result
from agex.sandbox.program_exit import require_good_end
from agex.sandbox.runtime.limits import Stop, TimeLimit
from agex.sandbox.runtime.output import Output, echo_text
from agex.sandbox.runtime.result import enforced
from agex.sandbox.runtime.workspace_files import Files, outside
from agex.sandbox.stdlib.traceback import format_own
from agex.values import NotKept

__all__ = ["FullSession"]

T = TypeVar("T")

_TEXT_SECONDS = 0.2
"""Seconds for the text of an error: an object of guest code may define ``__str__``."""
_NO_PLACE = "/"
"""The current directory of a worker that has no directory of its own."""
_SET_BY_PYTHON = {"__annotations__", "__conditional_annotations__", "__file__", "__warningregistry__"}
_MOST_NAME = 500
"""Characters of a variable's name that the host takes."""


class FullSession:
    """The namespace ``__main__`` of a worker, its runs and their limits.

    Args:
        policy: says what is registered; nothing else of it holds here.
        limits: of one run.
        output: makes the output of one run, from the number of characters that it keeps.
        files: the workspace of the terminal; None for none.
    """

    packs = False

    def __init__(
        self, policy: Policy, limits: Limits, output: Callable[[int], Output], files: Files | None = None
    ) -> None:
        self._limits = limits
        self._make_output = output
        self.programs = Programs()
        self.statements = ClassStatements(self.programs.notes)
        self._missing: dict[str, tuple[Any, str]] = {}
        self._ending: BaseException | None = None
        self._clock = SoftDeadline(None)
        self._output: Output | None = None
        self._writing = threading.RLock()
        self._process = os.getpid()
        self._runs = 0
        self._host_works = 0  # requests of the main thread that the host works on
        self._main = types.ModuleType("__main__")
        self._main.__dict__["__builtins__"] = builtins
        self.globals = vars(self._main)
        self._own = frozenset(self.globals) | _SET_BY_PYTHON
        self._set_up(policy)
        self._descriptors = CapturedDescriptors()
        self._place = str(Path.cwd())
        self._modules = None if self._place == _NO_PLACE else OwnModules(self._place)
        self._files = files

    def _set_up(self, policy: Policy) -> None:
        sys.modules["__main__"] = self._main
        sys.argv = [""]
        for name in policy.names.keys() - vars(builtins).keys():
            self.bind(name, policy.names[name])
        for name, module in _registered(policy):
            sys.modules.setdefault(name, module)
        _share_arenas()
        use_streams(self._print)
        self.statements.watch()
        signal.signal(signal.SIGALRM, self._alarm)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as CPython starts; a zygote ignores it

    @property
    def has_directory(self) -> bool:
        """Whether this worker has a directory of its own."""
        return self._place != _NO_PLACE

    @functools.cached_property
    def guest_files(self) -> Any:
        """The workspace of the terminal: the directory of this worker, which its code has, too."""
        if self._files is None:
            return None
        if self._place == _NO_PLACE:
            return self._files.guarded(outside)
        return connect_fs(type="isolated", root=self._place).guarded(outside)

    # -- names -----------------------------------------------------------------------------

    @property
    def defined(self) -> frozenset[str]:
        """Names that the last run bound by ``def`` or ``class`` at its top level."""
        return self.programs.defined

    @property
    def builtins(self) -> Mapping[str, Any]:
        """The names that guest code finds beside its variables."""
        return vars(builtins)

    @property
    def namespace(self) -> dict[str, Any]:
        """The variables of guest code."""
        return {name: value for name, value in list(self.globals.items()) if self._is_variable(name)}

    def _is_variable(self, name: object) -> bool:
        is_name = type(name) is str and name.isidentifier() and len(name) <= _MOST_NAME
        return is_name and name not in self._own

    def add(self, names: Mapping[str, Any]) -> None:
        """Bind variables."""
        self.globals.update(names)

    def bind(self, name: str, value: Any) -> None:
        """Bind a name that all code finds, as a builtin, and that is no variable."""
        setattr(builtins, name, value)

    def look_up(self, name: str) -> Any:
        """Return a variable; None where there is none."""
        return self.namespace.get(name)

    def is_guest_function(self, value: object) -> bool:
        """Return whether guest code defined a function."""
        return (
            isinstance(value, types.FunctionType) and self.programs.notes.source(value.__code__) is not None
        )

    @property
    def importer(self) -> FullSession:
        """Finds the names of modules."""
        return self

    handed_out: Mapping[str, types.ModuleType] = {}
    """Modules whose members are looked through for a name: none, they are found by their own."""

    def name_of(self, module: types.ModuleType) -> str | None:
        """Return the name by which a module can be imported; None where it cannot."""
        return module_name(module)

    def imported(self, name: str, *, run: bool = False) -> Any:
        """Return a module.

        Raises:
            ImportError: there is none, or it raised an error when it was imported.
        """
        try:
            return importlib.import_module(name)
        except ImportError:
            raise
        except Exception as error:
            raise ImportError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error

    @property
    def modules(self) -> dict[str, str]:
        """The variables that are modules, each with the names to import for it."""
        found: dict[str, str] = {}
        for name, value in self.namespace.items():
            marker, text = self._missing.get(name, (None, ""))
            if marker is not None and value is marker:
                found[name] = text
            elif type(value) is types.ModuleType and (home := module_name(value)) is not None:
                found[name] = " ".join([home, *self.programs.modules_in(home)])
        return found

    def import_again(self, modules: Mapping[str, str]) -> None:
        """Bind variables to modules; a variable whose module is gone says so when it is used."""
        for name, text in modules.items():
            home, *inside = text.split(" ")
            try:
                for each in inside:
                    self.imported(each)
                module = self.imported(home)
            except ImportError as error:
                module = NotKept(name, "module", str(error))
                self._missing[name] = module, text
            self.programs.dotted.update(dict.fromkeys(inside))
            self.globals[name] = module

    # -- running ---------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether a run is on."""
        return self._runs > 0

    def run(
        self, source: str, filename: str = "<agent>", *, echo: bool = True, awaits: bool = False
    ) -> Result:
        """Run a program; with *awaits* in an event loop, with ``await`` at its top level."""

        def work(result: Result) -> None:
            codes = self.programs.compiled(source, filename, echo=echo, awaits=awaits)
            value = None
            try:
                value = asyncio.run(self._finish(codes)) if awaits else self._go(codes)
            except SystemExit as ending:
                require_good_end(ending)
            if echo and value is not None:
                result.value = value
                result.echo = echo_text(value, self._limits.output_chars)

        return self._guarded(work)

    def _go(self, codes: Iterable[types.CodeType]) -> Any:
        value = None
        for code in codes:
            value = eval(code, self.globals)  # noqa: S307 - a process that runs nothing else
        return value

    async def _finish(self, codes: Iterable[types.CodeType]) -> Any:
        value = None
        for code in codes:
            value = eval(code, self.globals)  # noqa: S307 - a process that runs nothing else
            if code.co_flags & inspect.CO_COROUTINE:
                value = await value
        return value

    def define(self, source: str, filename: str, namespace: dict[str, Any], *, main: bool = False) -> Result:
        """Run a program in a namespace of its own."""

        def work(_: Result) -> None:
            namespace.setdefault("__name__", "__main__")
            exec(self.programs.noted(source, filename, ast.parse(source, filename)), namespace)  # noqa: S102 - see `_go`

        return self._guarded(work)

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result:
        """Call a function under the same limits."""

        def work(result: Result) -> None:
            result.value = function(*args, **kwargs)

        return self._guarded(work)

    def call_awaiting(self, function: Callable[[], Any]) -> Result:
        """Call a function in an event loop, and await an awaitable that it returns."""

        async def awaited() -> Any:
            value = function()
            return await value if inspect.isawaitable(value) else value

        return self.call(lambda: asyncio.run(awaited()))

    # -- one run ---------------------------------------------------------------------------

    def _guarded(self, work: Callable[[Result], None]) -> Result:
        result, start = Result(), time.perf_counter()
        outer, before = self._clock, self._output
        is_inside = outer.is_on and not outer.stands  # its clock goes on, and ends this run, too
        clock = outer if is_inside else SoftDeadline(self._limits.seconds)
        self._output = output = self._make_output(self._limits.output_chars)
        if self._runs == 0:
            self._ending = None
            signal.signal(signal.SIGALRM, self._alarm)  # an earlier action may have set its own
            if self._modules is not None:
                self._modules.forget_changed()
        self._runs += 1
        self._clock = clock
        try:
            try:
                try:
                    if not is_inside:
                        clock.start()
                    work(result)
                finally:
                    if not is_inside:
                        clock.cancel()
            except BaseException as error:  # noqa: BLE001 - guest code may raise anything; settled by class
                if not is_inside:
                    clock.cancel()  # a signal may have struck on the way out
                self._settle(result, error)
            if self._ending is not None and result.error is None and result.stopped is None:
                self._settle(result, Stop())  # guest code swallowed it
        finally:
            if os.getpid() != self._process:
                os._exit(0)  # guest code forked, and its parent goes on
            self._runs -= 1
            self._print(self._descriptors.take())
            self._clock, self._output = outer, before
            result.enforcement = enforced("none", "signal", self._limits.memory_mb is not None)
            result.duration = time.perf_counter() - start
            result.stdout = output.text()
        return result

    def _settle(self, result: Result, error: BaseException) -> None:
        """Put the exception that ended the run into the result."""
        ending = self._ending
        if ending is not None:
            result.value, result.echo = None, None
            if not isinstance(ending, TimeoutError):
                result.stopped = ending
                return
            told: Exception = _limit_error(ending)
        elif isinstance(error, MemoryError):
            told = _limit_error(error)
        elif isinstance(error, Exception):
            told = error
        else:
            name = type(error).__name__
            told = SandboxError(f"{name} is not available to end a program; return or raise an Exception")
            told.__cause__ = error
        result.error = told
        result.traceback = self._text_of(told, error)

    def _text_of(self, told: Exception, raised: BaseException) -> str:
        """Return the traceback of guest code's own frames; its objects may take their time for a text."""
        shown = told.with_traceback(raised.__traceback__)
        try:
            return self.in_time(lambda: format_own(shown, self._is_own, self.programs.sources), _TEXT_SECONDS)
        except Exception as broken:  # noqa: BLE001 - guest code may define __str__
            return f"{type(told).__name__}: (its text could not be made: {type(broken).__name__})"

    def in_time(self, work: Callable[[], T], seconds: float) -> T:
        """Call a function that may run guest code, and is no run of it.

        Raises:
            Exception: its own; a RuntimeError for a limit that struck, and for what is no `Exception`.
        """
        clock = SoftDeadline(seconds)
        outer, self._clock, ending = self._clock, clock, self._ending
        try:
            try:
                clock.start()
                return work()
            finally:
                clock.cancel()
        except Exception:
            raise
        except BaseException as error:  # noqa: BLE001 - a limit, or what guest code raises to end all
            clock.cancel()
            what = f"it takes longer than {seconds:g} s" if isinstance(error, Stop) else repr(type(error))
            raise RuntimeError(what) from None
        finally:
            self._clock, self._ending = outer, ending

    def _is_own(self, frame: types.FrameType) -> bool:
        return self.programs.notes.source(frame.f_code) is not None

    # -- output ----------------------------------------------------------------------------

    def _print(self, text: str) -> int:
        """Take printed text; that of a thread between two runs has no reader."""
        if os.getpid() != self._process:
            os.write(1, text.encode("utf-8", "backslashreplace"))
            return len(text)
        with self._writing:
            if self._output is not None and text:
                self._output.write(text)
        return len(text)

    # -- ending a run ----------------------------------------------------------------------

    def _alarm(self, *_: object) -> None:
        """End the code of the main thread: its time is over, or another thread ended the task."""
        if not self._clock.is_on or self._host_works:
            return
        if self._ending is None:
            seconds = self._limits.seconds or 0
            self._ending = TimeoutError(f"the code ran longer than {seconds:g} s; do less in one step")
        raise TimeLimit if isinstance(self._ending, TimeoutError) else Stop

    def stop(self, ending: BaseException) -> NoReturn:
        """End the run from a host function that guest code called, in any thread."""
        if self._ending is None:
            self._ending = ending
        main = threading.main_thread()
        if threading.current_thread() is not main and main.ident is not None:
            signal.pthread_kill(main.ident, signal.SIGALRM)
        raise Stop

    def interrupt(self, ending: BaseException) -> None:
        """End the run, from a signal handler."""
        if self.is_running and self._ending is None:
            self._ending = ending
        if self._clock.is_on and not self._host_works:
            raise Stop

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let the clock stand still while the host works for guest code."""
        clock, is_main = self._clock, threading.current_thread() is threading.main_thread()
        clock.pause()
        self._host_works += is_main
        try:
            yield
        finally:
            self._host_works -= is_main
            clock.resume()
        if self._ending is not None and is_main and self.is_running and clock.is_on:
            raise Stop  # it was interrupted meanwhile

    def charge(self, seconds: float) -> None:
        """Take seconds off the clock that stands: the host used them for guest code."""
        self._clock.charge(seconds)


_M_ARENA_MAX = -8


def _share_arenas() -> None:
    """Let threads share two arenas of memory: each has 64 MB of address space, which is limited."""
    allocator = ctypes.CDLL(None)
    if hasattr(allocator, "mallopt"):  # of the GNU library
        allocator.mallopt(_M_ARENA_MAX, 2)


def _limit_error(cause: BaseException) -> EvalError:
    text = str(cause) if type(cause) in {MemoryError, TimeoutError} else ""
    error = EvalError(f"{type(cause).__name__}: {text or 'out of memory; process the data in smaller parts'}")
    error.__cause__ = cause
    return error


def _registered(policy: Policy) -> Iterator[tuple[str, types.ModuleType]]:
    """Return the registered modules, by the names that guest code imports."""
    for grant in policy.grants:
        if grant.kind == "module" and isinstance(grant.target, types.ModuleType):
            yield str(grant.settings.get("name") or grant.target.__name__), grant.target


def module_name(module: types.ModuleType) -> str | None:
    """Return the name by which a module can be imported; None where it cannot."""
    name = vars(module).get("__name__")
    if type(name) is str and sys.modules.get(name) is module:
        return name
    return next((each for each, found in list(sys.modules.items()) if found is module), None)
