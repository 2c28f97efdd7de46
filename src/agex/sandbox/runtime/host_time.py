"""Host time: while a registered function works, the clock of the run stands still.

Guest code in a callback of that function uses the time of the run again. So a run that may call such a
function is looked at now and then, and the time since the last look counts for the side that is at work then.
A Python function is recognized by its code object; any other is wrapped in a Python function.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
import itertools
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

from agex._interpreter import threads
from agex.errors import DefinitionError
from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.runtime.kill_switch import frames_of
from agex.sandbox.runtime.provenance import session_in

__all__ = ["HOST_TIME", "host_works", "in_host_time", "methods_of_host", "of_host", "require_timeout"]

HOST_TIME = "time"
"""Stands among the permissions of a method whose time is host time as well."""

_codes: weakref.WeakSet[types.CodeType] = weakref.WeakSet()


def of_host(function: Callable[..., Any], *, timeout: float | None = None) -> Callable[..., Any]:
    """Return a function that runs in host time: itself, where its code object identifies it.

    Args:
        function: a host function.
        timeout: seconds that a run waits for it. Then the run ends; the function goes on to its end, in a
            thread of its own. None to wait for as long as it takes.
    """
    if timeout is not None:
        _codes.add(_note.__code__)  # below which it works, in its thread
        return _handed_out(_waited_for(function, timeout))
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if isinstance(code, types.CodeType):
        _codes.add(code)
    elif isinstance(function, types.BuiltinFunctionType):
        return _handed_out(function)
    return function


def in_host_time(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper that does any work of the host in host time."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return work(*args, **kwargs)

    _codes.add(call.__code__)
    return call


def methods_of_host(class_: type) -> bool:
    """Make the methods of a class run in host time; return whether code objects identify all of them."""
    found = [member for base in class_.__mro__ if base is not object for member in vars(base).values()]
    for member in found:
        for each in (member, *(getattr(member, name, None) for name in ("__func__", "fget", "__wrapped__"))):
            if isinstance(each, types.FunctionType):
                _codes.add(each.__code__)
    return not any(isinstance(member, types.MethodDescriptorType) for member in found)


def _handed_out(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    _codes.add(call.__code__)
    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(call, name, getattr(function, name, None) or "call")
    call.__signature__ = _signature(function)  # type: ignore[attr-defined]
    return call


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError, AttributeError):  # a builtin without a signature, or a wrapper of agex
        return None


def require_timeout(timeout: float | None) -> None:
    """Refuse a timeout that is no number above 0.

    Raises:
        DefinitionError: it is no number above 0.
    """
    if timeout is None:
        return
    said: Any = timeout  # of a host that checks no types
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    if not is_number or not 0 < timeout < threading.TIMEOUT_MAX:
        raise DefinitionError(f"timeout={timeout!r} is no limit; give seconds above 0, or None for none")


def host_works(thread: int) -> bool:
    """Return whether a registered function is at work in a thread, and not guest code that it called."""
    while thread in _working_for:  # it waits for another, in which a function with a limit works
        thread = _working_for[thread]
    found = frames_of(thread)
    try:
        return any(map(_is_hosts, itertools.takewhile(_is_not_of_guest, found)))
    finally:
        found.clear()  # of this very thread, they hold this list


_working_for: dict[int, int] = {}
"""By the thread that waits: the one in which a function works that has a limit of its own."""


def _is_not_of_guest(frame: types.FrameType | None) -> bool:
    return frame is not None and "stop!" not in frame.f_builtins


def _is_hosts(frame: types.FrameType) -> bool:
    return frame.f_code in _codes


def _waited_for(function: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    """Return a function that runs another in a thread, and ends the run when it is late."""

    @functools.wraps(function)
    def wait(*args: Any, **kwargs: Any) -> Any:
        if not threads.CAN_START:
            return function(*args, **kwargs)
        outcome: list[tuple[Any, BaseException | None]] = []
        context = contextvars.copy_context()
        work = threading.Thread(
            target=context.run,
            args=(_note, outcome, function, args, kwargs),
            daemon=True,
            name="agex function",
        )
        work.start()
        here = threading.get_ident()
        try:
            _working_for[here] = work.ident or 0
            work.join(seconds)
        finally:
            _working_for.pop(here, None)
        if not outcome:
            _end_run(getattr(function, "__name__", "a function"), seconds)
        value, error = outcome[0]
        if error is not None:
            raise error
        return value

    return wait


def _note(
    outcome: list[Any], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        outcome.append((function(*args, **kwargs), None))
    except BaseException as error:  # noqa: BLE001 - raised where it is waited for
        outcome.append((None, error))


def _end_run(name: str, seconds: float) -> NoReturn:
    late = TimeoutError(f"{name}() took longer than its timeout of {seconds:g} s")
    guards = CURRENT.get()
    session = None if guards is None else session_in(guards.builtins)
    if session is None:
        raise late
    session.stop(late)
