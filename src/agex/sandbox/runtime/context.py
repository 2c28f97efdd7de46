"""Which session's guest code is running here and now."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.runtime.apart import call_apart

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = [
    "CARRIED", "CURRENT", "RUNS", "as_host", "asking", "call_serving", "caller", "calling", "frames_of",
    "guest_asking", "is_foreign", "maker",
]  # fmt: skip

T = TypeVar("T")

CURRENT: ContextVar[Membrane | None] = ContextVar("agex_guest", default=None)
"""The guards of the guest code running in this context; None in host code."""

CARRIED: ContextVar[bool] = ContextVar("agex_carried", default=False)
"""Whether this is a thread of a library, in the context of a run that it outlives perhaps."""

RUNS: set[Membrane] = set()
"""The guards of the sessions that run, in whatever thread."""

_SERVED: ContextVar[Membrane | None] = ContextVar("agex_served", default=None)
"""The guards of the guest that host code works for here with powers of its own."""


@contextmanager
def as_host() -> Iterator[None]:
    """Be the host, who works for nobody, for the length of a block."""
    guest, served = CURRENT.set(None), _SERVED.set(None)
    try:
        yield
    finally:
        _SERVED.reset(served)
        CURRENT.reset(guest)


def call_serving(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call a function as the host, who may call what the guest of this context gave it."""
    return call_apart({CURRENT: None, _SERVED: CURRENT.get()}, function, *args, **kwargs)


_BETWEEN = sys.stdlib_module_names | {"agex"}


def asking() -> Membrane | None:
    """Return the guards of the guest code that asks; None where it is the host. All stand-ins ask here.

    A function of the guest's that the host calls after its run is in no run: there it is told by its frame,
    if nothing is between but libraries, which call what they are given. A host that serves a guest may have
    been given what it calls.

    Raises:
        SandboxError: nobody can be told to ask. Compiled code calls a library in a thread of its own, with
            nothing of the host's or of a guest's below, while guest code runs.
    """
    guards, outermost = _asker()
    if guards is None and outermost is not None and RUNS and is_foreign() and _is_granted(outermost):
        raise SandboxError(
            "this call belongs to no run: compiled code makes it in a thread of its own while sandboxed code "
            "runs; pass a function of your own that makes it"
        )
    return guards


def guest_asking() -> Membrane | None:
    """Return what `asking` returns, and None where nobody can be told to ask: where nothing is decided."""
    return _asker()[0]


def _asker() -> tuple[Membrane | None, types.FrameType | None]:
    """Find who asks; or else the outermost frame, where libraries alone lead here."""
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
            return None, None  # a module that is being loaded is the host's, whoever asked for it
        if not _is_between(frame):
            return _SERVED.get(), None
        outermost, frame = frame, frame.f_back
    return _SERVED.get(), outermost


def is_foreign() -> bool:
    """Return whether this thread was started by compiled code, not by Python's ``threading``."""
    threads: Any = threading  # current_thread() would note this one for good
    known = threads._active.get(threading.get_ident())
    return known is None or type(known) is threads._DummyThread


def _is_granted(outermost: types.FrameType) -> bool:
    """Return whether a run may have handed out what a foreign thread begins in.

    A server of the host may have foreign threads too; they begin in the server, which no run was granted.
    """
    name = outermost.f_globals.get("__name__")
    root = name.partition(".")[0] if type(name) is str else ""
    return root in _BETWEEN or any(guards.policy.covers(root) for guards in list(RUNS))


def calling() -> Membrane | None:
    """Give the guards of the guest code that calls a library; None where code of the host calls it."""
    frame: types.FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        check: Any = frame.f_builtins.get("check!")
        if check is not None:
            found: Membrane = check.__self__
            return found
        if frame.f_code.co_filename.startswith("<frozen importlib") or not _is_between(frame):
            return None
        frame = frame.f_back
    return None


def maker(metaclass: str) -> Membrane:
    """Give the guards of the guest that makes a class; else nobody would look at what it is given."""
    guards = asking()
    if guards is None:
        raise SandboxTypeError(f"{metaclass}() makes no classes where it is given to be called; call it")
    return guards


def caller(builtins: dict[str, Any]) -> types.FrameType:
    """Give the frame that called a builtin of ours: one of the guest's, by its builtins.

    A function of the host that was given the builtin to call has names that are none of the guest's.
    """
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - eval() and locals() are about their caller
    if frame.f_builtins is not builtins:
        raise SandboxError(
            "globals(), locals(), vars(), dir(), eval() and exec() are about their caller; "
            "call them in your own code instead of giving them to be called"
        )
    return frame


def frames_of(guards: Membrane) -> Iterator[types.FrameType]:
    """Give the frames of a guest's code that led here, the innermost first."""
    frame: types.FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_builtins is guards.builtins:
            yield frame
        frame = frame.f_back


def _is_between(frame: types.FrameType) -> bool:
    """Tell whether code is of this library, of Python's own or of an installed one."""
    name = frame.f_globals.get("__name__")
    is_ours = type(name) is str and name.partition(".")[0] in _BETWEEN
    return is_ours or "site-packages" in frame.f_code.co_filename
