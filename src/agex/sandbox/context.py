"""Which session's guest code is running here and now."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.apart import call_apart

if TYPE_CHECKING:
    from agex.sandbox.guards import Guards

__all__ = ["CURRENT", "as_host", "asking", "call_serving", "caller", "calling", "frames_of", "maker"]

T = TypeVar("T")

CURRENT: ContextVar[Guards | None] = ContextVar("agex_guest", default=None)
"""The guards of the guest code running in this context; None in host code."""

_SERVED: ContextVar[Guards | None] = ContextVar("agex_served", default=None)
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


def asking() -> Guards | None:
    """Give the guards of the guest code that asks; None where it is the host.

    A function of the guest's that the host calls after its run is in no run: there it is told by its frame,
    if nothing is between but libraries, which call what they are given. A host that serves a guest may have
    been given what it calls.
    """
    guards = CURRENT.get()
    frame: types.FrameType | None = None if guards else sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        check: Any = frame.f_builtins.get("check!")
        if check is not None:
            found: Guards = check.__self__
            return found
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return None  # a module that is being loaded is the host's, whoever asked for it
        if not _is_between(frame):
            break
        frame = frame.f_back
    return guards or _SERVED.get()


def calling() -> Guards | None:
    """Give the guards of the guest code that calls a library; None where code of the host calls it."""
    frame: types.FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        check: Any = frame.f_builtins.get("check!")
        if check is not None:
            found: Guards = check.__self__
            return found
        if frame.f_code.co_filename.startswith("<frozen importlib") or not _is_between(frame):
            return None
        frame = frame.f_back
    return None


def maker(metaclass: str) -> Guards:
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


def frames_of(guards: Guards) -> Iterator[types.FrameType]:
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
