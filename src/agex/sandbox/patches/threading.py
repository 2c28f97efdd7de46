"""Threads of libraries, in which functions of guest code are called.

* A thread that compiled code starts is *foreign*: the interpreter did not start it, and its context has no
  variables. `carried` makes a function that is handed to polars run there in the context of its run.
* A `threading.Thread` that is started while guest code runs (joblib, a pool) has the context of that run. So
  has a function submitted to an executor, also to one of the host.
* Any other `threading.Thread` belongs to the host.

A carried function is not called in a thread of a library once its run is over.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxError
from agex.sandbox.patches.replacement import replace
from agex.sandbox.runtime.context import CARRIED, CURRENT, call_apart, calling, is_foreign
from agex.sandbox.runtime.kill_switch import is_inside
from agex.sandbox.runtime.limits import Stop

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["THREADED", "carried", "end_elsewhere", "hold_executors", "install"]

THREADED = "polars"
"""The library that calls functions in threads of its own while the run's waits in compiled code."""

_PATIENCE = 1.0
"""Seconds for guest code in other threads to end with its run: its stop flag is set."""


def carried(function: Any) -> Any:
    """Return a function that is called in the context of this run, in any thread."""
    guards = CURRENT.get()
    return function if guards is None or not callable(function) else _CarriedToThreads(guards, function)


class _Carried:
    """Stands for a function that guest code handed to a library."""

    __slots__ = ("_function", "_guards")

    def __init__(self, guards: Membrane, function: Callable[..., Any]) -> None:
        self._guards = guards
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        run = self._guards.run
        if run is None:
            raise SandboxError(f"{_name_of(self._function)}() is not called any more: its run is over")
        return run.copy().run(_noted, self._guards, self._function, args, kwargs)


class _CarriedToThreads(_Carried):
    """A function that is called directly in the thread of its run, or of the host."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if CARRIED.get() or is_foreign():
            return super().__call__(*args, **kwargs)
        return self._function(*args, **kwargs)


def _name_of(function: Any) -> str:
    is_function = type(function) in (types.FunctionType, types.BuiltinFunctionType)
    return str(function.__name__ if is_function else type(function).__name__)  # of no guest object


def _noted(guards: Membrane, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Note the thread as one in which guest code is to be ended."""
    CARRIED.set(True)
    guards.threads.add(threading.get_ident())
    if guards.run is None:  # read behind the line above: the run may be ending
        raise SandboxError(f"{_name_of(function)}() is not called any more: its run is over")
    return function(*args, **kwargs)


def end_elsewhere(guards: Membrane) -> None:
    """Wait until guest code of a run that is over has ended in other threads; its stop checks are on."""
    mine = {threading.get_ident()}
    until = time.monotonic() + _PATIENCE
    while guards.threads - mine and time.monotonic() < until:
        for thread in guards.threads - mine:
            if not is_inside(thread, guards.builtins):
                guards.threads.discard(thread)
        time.sleep(0.001 if guards.threads - mine else 0)
    guards.threads.clear()


def _starter() -> Membrane | None:
    """Return the guards of the guest code that makes a library start a thread; None for host code."""
    return calling() or (CURRENT.get() if CARRIED.get() else None)


def _starting(real: Callable[..., None]) -> Callable[..., None]:
    """Stand in for ``Thread.start``: a thread that runs guest code passes its context on."""

    def start(self: threading.Thread) -> None:
        guards = _starter()
        if guards is not None and guards.run is not None:
            target = "function" if isinstance(self, threading.Timer) else "_target"
            if (function := vars(self).get(target)) is not None:
                setattr(self, target, _Carried(guards, function))
            self.run = functools.partial(_run, self, guards, copy_context(), self.run)  # type: ignore[method-assign]
        real(self)

    return start


def _run(thread: threading.Thread, guards: Membrane, context: Any, run: Callable[[], None]) -> None:
    try:
        with suppress(Stop):  # the thread ends with the run that started it
            context.run(_noted, guards, run, (), {})
    finally:
        vars(thread).pop("run", None)  # which refers to the thread


def _submitting(real: Callable[..., Any]) -> Callable[..., Any]:
    """Stand in for ``submit`` of an executor, whose threads may be of the host and stay so."""

    def submit(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        guards = _starter()
        if guards is None:
            return real(self, fn, *args, **kwargs)
        return call_apart({CURRENT: None}, real, self, _Carried(guards, fn), *args, **kwargs)

    return submit


def install() -> None:
    """Patch ``Thread.start``, so that threads started by guest code are known."""
    replace(threading.Thread, "start", _starting)


def hold_executors() -> None:
    """Patch ``submit`` of executors, if they are loaded: importing them takes long."""
    module: Any = sys.modules.get("concurrent.futures.thread")
    if module is not None and module is not _held.get("executors"):
        replace(module.ThreadPoolExecutor, "submit", _submitting)
        _held["executors"] = module


_held: dict[str, Any] = {}
