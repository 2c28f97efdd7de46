"""``queue`` and ``time.sleep`` for guest code: waiting is divided into slices with stop checks between them.

A lock that is waited for in C notices a time limit on the main thread only. Host threads may still put items
into a queue that guest code waits for.
"""

from __future__ import annotations

import _thread
import functools
import operator
import threading
import time
from collections.abc import Callable
from typing import Any

from agex.sandbox.classes import stand_ins
from agex.sandbox.runtime.kill_switch import check_stop

__all__ = ["members", "sleep"]

_SLICE = 0.05
"""Seconds between two stop checks while waiting."""


class _Lock:
    """A lock that is waited for in slices."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._lock.acquire(False):
            return True
        if not blocking:
            return False
        return _in_slices(lambda seconds: self._lock.acquire(True, seconds), None if timeout < 0 else timeout)

    def release(self) -> None:
        self._lock.release()

    def locked(self) -> bool:
        return self._lock.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def _wait(self: Any, timeout: float | None = None) -> bool:
    """Wait like a condition, and return early now and then: the callers test their condition again."""
    check_stop()
    woken = threading.Condition.wait(self, _SLICE if timeout is None else min(timeout, _SLICE))
    check_stop()
    return woken


class _Semaphore(threading.Semaphore):
    """A semaphore that is waited for in slices."""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if not blocking:
            return super().acquire(False)
        return _in_slices(functools.partial(super().acquire, True), timeout)


def _in_slices(wait: Callable[[float], bool], timeout: float | None) -> bool:
    """Call *wait* with a number of seconds until it returns True, or *timeout* is over."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        check_stop()
        left = _SLICE if end is None else min(end - time.monotonic(), _SLICE)
        if wait(max(left, 0)):
            return True
        if end is not None and time.monotonic() >= end:
            return False


_sleep = time.sleep
_NO_NUMBERS = frozenset({type(None), str, bytes, list, tuple, dict, set})


def sleep(seconds: Any, /) -> None:
    """Suspend execution for a given number of seconds, which may be a fraction."""
    if isinstance(seconds, float):
        length: float = float.__float__(seconds)
    else:
        if type(seconds) in _NO_NUMBERS:
            _sleep(seconds)  # raises the error of this Python version
        length = operator.index(seconds)
    if not _SLICE < length < threading.TIMEOUT_MAX:
        check_stop()
        _sleep(length)  # raises the real error, if there is one
        return
    end = time.monotonic() + length
    while (left := end - time.monotonic()) > 0:
        check_stop()
        _sleep(min(left, _SLICE))
    check_stop()


@functools.cache
def members() -> dict[str, type]:
    """Return the waiting classes of ``queue``, once guest code has imported it.

    They have the methods of the real classes, but not these as bases: guest code could derive from a base.
    """
    import queue

    def __init__(self: Any, maxsize: int = 0) -> None:  # noqa: N807 - it is the one of the class below
        start(self, maxsize)
        mutex: Any = _Lock()
        self.mutex = mutex
        for name in ("not_empty", "not_full", "all_tasks_done"):
            setattr(self, name, condition(mutex))

    def simple(self: Any) -> None:
        start_simple(self)
        self._count = _Semaphore(0)

    condition = _copied(threading.Condition, (), wait=_wait)
    # They hold locks of the interpreter, for which C code would wait without checks.
    stand_ins.closed(condition)
    stand_ins.closed(_Lock)
    start = queue.Queue.__init__
    real_simple: Any = vars(queue)["_PySimpleQueue"]
    start_simple = real_simple.__init__
    base = _copied(queue.Queue, (), __init__=__init__)
    made = [base, *(_copied(each, (base,)) for each in (queue.LifoQueue, queue.PriorityQueue))]
    made.append(_copied(real_simple, (), __init__=simple, __name__="SimpleQueue"))
    return {each.__name__: each for each in made}


def _copied(real: type, bases: tuple[type, ...], **instead_of: Any) -> type:
    """Make a class with the methods of another one."""
    namespace = {name: value for name, value in vars(real).items() if name not in _OF_ITSELF} | instead_of
    made = type(namespace.pop("__name__", real.__name__), bases, namespace)
    stand_ins.note_ours(made)
    return made


_OF_ITSELF = frozenset({"__dict__", "__weakref__"})
