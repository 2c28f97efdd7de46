"""Running blocking work beside an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from agex._interpreter.threads import in_thread

__all__ = ["MOST_THREADS", "in_thread", "or_cancelled", "turn_of"]

T = TypeVar("T")

GRACE = 1.0
"""Seconds that cancelled work gets to end before its caller goes on without it."""

MOST_THREADS = 32
"""Of one event loop, at each depth of tasks that call tasks."""

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = WeakKeyDictionary()


def turn_of(depth: int) -> asyncio.Semaphore:
    """Return the semaphore to acquire before work begins in a thread, and to hold until it is over.

    An action waits for the tasks that it calls. Were there one bound for all, those at the top could
    hold every thread and wait for one more; so each depth has a bound of its own.
    """
    gates = _gates.setdefault(asyncio.get_running_loop(), {})
    return gates.setdefault(depth, asyncio.Semaphore(MOST_THREADS))


async def or_cancelled(work: asyncio.Future[T], cancel: Callable[[BaseException], None]) -> T:
    """Wait for *work* that runs in a thread; where the wait is cancelled, *cancel* is to end the work."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError as cancelled:
        cancel(cancelled)
        await asyncio.wait({work}, timeout=GRACE)
        if work.done() and not work.cancelled():
            work.exception()  # taken, or asyncio says that nobody did: it is the cancellation itself
        raise
