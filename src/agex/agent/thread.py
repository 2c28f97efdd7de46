"""Running blocking work beside an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar
from weakref import WeakKeyDictionary

from agex import threads

__all__ = ["MOST_THREADS", "in_thread", "or_cancelled", "turn_of"]

T = TypeVar("T")

GRACE = 1.0
"""Seconds that cancelled work gets to end before its caller goes on without it."""

MOST_THREADS = 32
"""Of one event loop, at each depth of tasks that call tasks."""

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = WeakKeyDictionary()


def turn_of(depth: int) -> asyncio.Semaphore:
    """Return what to wait for before work begins in a thread, and to hold until it is over.

    An action waits for the tasks that it calls. Were there one bound for all, those at the top could
    hold every thread and wait for one more; so each depth has a bound of its own.
    """
    gates = _gates.setdefault(asyncio.get_running_loop(), {})
    return gates.setdefault(depth, asyncio.Semaphore(MOST_THREADS))


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run *work* in a thread of its own, with the caller's context variables.

    It is no pool: work that cannot be stopped would keep a thread of it for good. Where there are
    no threads, the event loop stands still meanwhile.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is one where there is no error

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = context.run(work) if threads.CAN_START else context.run(threads.stand_in, work)
        except BaseException as raised:  # noqa: BLE001 - it is raised where the future is awaited
            error = raised
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    if threads.CAN_START:
        threading.Thread(target=run, name="agex action", daemon=True).start()
    else:
        loop.call_later(0, run)  # not before what waits for the loop: a page paints
    return future


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
