"""The context of guest code: which session runs here, and who called.

`call_apart` sets variables of the context for the length of a call. A context manager would end in Python
code: a time limit that strikes there, a full stack or lack of memory leaves the variables set. It could also
put old values back when a traceback is dropped, in the midst of other work. The interpreter itself leaves a
context in any case.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from agex.errors import SandboxError, SandboxTypeError

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = [
    "CARRIED", "CURRENT", "RUNS", "as_host", "asking", "call_apart", "call_serving", "caller", "calling",
    "frames_of", "guest_asking", "is_between", "is_foreign", "maker", "take_over",
]  # fmt: skip

T = TypeVar("T")

CURRENT: ContextVar[Membrane | None] = ContextVar("agex_guest", default=None)
"""The guards of the guest code running in this context; None in host code."""

CARRIED: ContextVar[bool] = ContextVar("agex_carried", default=False)
"""Whether this is a thread of a library, in the context of a run that it may outlive."""

RUNS: set[Membrane] = set()
"""The guards of the sessions that run, in any thread."""

_SERVED: ContextVar[Membrane | None] = ContextVar("agex_served", default=None)
"""The guards of the guest code that host code works for here, with the powers of the host."""


def call_apart(
    values: Mapping[ContextVar[Any], Any], function: Callable[..., T], /, *args: Any, **kwargs: Any
) -> T:
    """Call a function with variables of the context set; other variables that it sets stay set."""
    context = copy_context()
    try:
        return context.run(_set_and_call, values, function, args, kwargs)
    finally:
        take_over(context, values)


def _set_and_call(
    values: Mapping[ContextVar[Any], Any], function: Callable[..., T], args: Any, kwargs: Any
) -> T:
    for variable, value in values.items():
        variable.set(value)
    return function(*args, **kwargs)


def take_over(context: Context, values: Collection[ContextVar[Any]] = ()) -> None:
    """Set the variables in which a context differs from the present one, except those in *values*."""
    for variable, value in context.items():
        if variable.get(_UNSET) is not value and variable not in values:
            variable.set(value)


_UNSET = object()


@contextmanager
def as_host() -> Iterator[None]:
    """Run a block as the host, without guest code that it works for."""
    guest, served = CURRENT.set(None), _SERVED.set(None)
    try:
        yield
    finally:
        _SERVED.reset(served)
        CURRENT.reset(guest)


def call_serving(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call a function as the host, which may call functions that the guest code of this context passed."""
    return call_apart({CURRENT: None, _SERVED: CURRENT.get()}, function, *args, **kwargs)


_BETWEEN = sys.stdlib_module_names | {"agex"}


def asking() -> Membrane | None:
    """Return the guards of the guest code that calls; None where host code does. All stand-ins call this.

    A guest function that the host calls after its run is in no run. Its frame identifies it, if only
    libraries stand between: they call functions that they are passed. A host that serves guest code may have
    been passed the function that it calls.

    Raises:
        SandboxError: the caller cannot be identified. Compiled code calls a library in a thread of its own,
            with neither host code nor guest code below, while guest code runs.
    """
    guards, outermost = _asker()
    if guards is None and outermost is not None and RUNS and is_foreign() and _is_granted(outermost):
        raise SandboxError(
            "this call belongs to no run: compiled code makes it in a thread of its own while sandboxed code "
            "runs; pass a function of your own that makes it"
        )
    return guards


def guest_asking() -> Membrane | None:
    """Return the same as `asking`; None where the caller is unknown. For notes, not for decisions."""
    return _asker()[0]


def _asker() -> tuple[Membrane | None, types.FrameType | None]:
    """Find the guards of the caller, or else the outermost frame where only libraries lead here."""
    guards = CURRENT.get()
    if guards is not None:
        return guards, None
    frame: types.FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    outermost = frame
    while frame is not None:
        check: Any = frame.f_builtins.get("check!")
        if check is not None:
            return check.__self__, None
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return None, None  # a module that is being loaded is host code, also for an import of guest code
        if not is_between(frame):
            return _SERVED.get(), None
        outermost, frame = frame, frame.f_back
    return _SERVED.get(), outermost


def is_foreign() -> bool:
    """Return whether this thread was started by compiled code, not by Python's ``threading``."""
    threads: Any = threading  # current_thread() would register this thread for good
    known = threads._active.get(threading.get_ident())
    return known is None or type(known) is threads._DummyThread


def _is_granted(outermost: types.FrameType) -> bool:
    """Return whether a run may have handed out the function that a foreign thread begins in.

    A server of the host may have foreign threads too; they begin in the server, which is granted to no run.
    """
    name = outermost.f_globals.get("__name__")
    root = name.partition(".")[0] if type(name) is str else ""
    return root in _BETWEEN or any(guards.policy.covers(root) for guards in list(RUNS))


def calling() -> Membrane | None:
    """Return the guards of the guest code that calls a library; None where host code calls it."""
    frame: types.FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        check: Any = frame.f_builtins.get("check!")
        if check is not None:
            found: Membrane = check.__self__
            return found
        if frame.f_code.co_filename.startswith("<frozen importlib") or not is_between(frame):
            return None
        frame = frame.f_back
    return None


def maker(metaclass: str) -> Membrane:
    """Return the guards of the guest code that makes a class: without them its arguments go unchecked."""
    guards = asking()
    if guards is None:
        raise SandboxTypeError(f"{metaclass}() makes no classes where it is given to be called; call it")
    return guards


def caller(builtins: dict[str, Any]) -> types.FrameType:
    """Return the frame of guest code that called a guarded builtin, identified by its builtins.

    A host function that was passed the builtin has other variables than guest code.
    """
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - eval() and locals() are about their caller
    if frame.f_builtins is not builtins:
        raise SandboxError(
            "globals(), locals(), vars(), dir(), eval() and exec() are about their caller; "
            "call them in your own code instead of giving them to be called"
        )
    return frame


def frames_of(guards: Membrane) -> Iterator[types.FrameType]:
    """Yield the frames of guest code that led here, the innermost first."""
    frame: types.FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_builtins is guards.builtins:
            yield frame
        frame = frame.f_back


def is_between(frame: types.FrameType) -> bool:
    """Return whether a frame is of agex, of the standard library or of an installed library."""
    name = frame.f_globals.get("__name__")
    is_ours = type(name) is str and name.partition(".")[0] in _BETWEEN
    return is_ours or "site-packages" in frame.f_code.co_filename
