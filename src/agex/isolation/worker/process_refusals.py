"""Errors that name the level, where the kernel refuses what full Python asks for.

The kernel decides; what it refuses is an `OSError` without a reason. The functions here make the same call,
and add the reason to its error. Code that takes them out gains nothing.
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
import socket
import sys
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["name_level"]

_NO_PROCESS = "the level {level!r} allows no processes; use threads, or do the work in this process"
_NO_NETWORK = "the level {level!r} allows no network; register a function of the host for what needs it"
_PROCESSES = ("fork", "forkpty", "posix_spawn", "posix_spawnp")


def name_level(level: str) -> None:
    """Let the refusals of a level be said by name, for the rest of this process."""
    no_process, no_network = _NO_PROCESS.format(level=level), _NO_NETWORK.format(level=level)
    for name in _PROCESSES:
        setattr(os, name, _with_reason(getattr(os, name), no_process))
    os.system = _refusing(no_process)  # it returns a number for what the kernel refuses
    socket.socket.__init__ = _with_reason(socket.socket.__init__, no_network)  # type: ignore[method-assign]
    socket.getaddrinfo = _refusing(no_network)  # it would say that the name is unknown
    _name_in_modules(no_process)


def _name_in_modules(reason: str) -> None:
    import _posixsubprocess

    semaphores = importlib.import_module("_multiprocessing")

    _posixsubprocess.fork_exec = _with_reason(_posixsubprocess.fork_exec, reason)
    if "subprocess" in sys.modules:
        vars(sys.modules["subprocess"])["_fork_exec"] = _posixsubprocess.fork_exec
    vars(semaphores)["SemLock"] = _refusing_class(vars(semaphores)["SemLock"], reason)


def _with_reason(call: Callable[..., Any], reason: str) -> Callable[..., Any]:
    @functools.wraps(call)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except PermissionError as error:
            raise PermissionError(error.errno, reason) from None

    return told


def _refusing(reason: str) -> Callable[..., NoReturn]:
    def refused(*_: Any, **__: Any) -> NoReturn:
        raise PermissionError(errno.EPERM, reason)

    return refused


def _refusing_class(base: Any, reason: str) -> Any:
    """Return a class of semaphores between processes, which asks for a file that is not there."""

    def new(*_: Any, **__: Any) -> NoReturn:
        raise PermissionError(errno.EPERM, reason)

    return type(base.__name__, (base,), {"__new__": new, "__module__": base.__module__})
