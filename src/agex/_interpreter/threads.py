"""Threads for blocking work beside an event loop, and a substitute where none can be started.

A browser tab has no threads: the work runs in the event loop itself there, which stands still meanwhile.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["CAN_START", "awaitable", "blocks_the_loop", "in_thread", "off_loop", "stand_in"]

T = TypeVar("T")


def _can_start() -> bool:
    if sys.platform == "wasi":
        return False
    built = getattr(sys, "_emscripten_info", None)  # documented; only there on that platform
    return built is None or bool(built.pthreads)


CAN_START = _can_start()
"""Whether a thread can be started here."""

_standing_in: ContextVar[bool] = ContextVar("agex_stands_in_for_a_thread", default=False)


async def off_loop(work: Callable[[], T]) -> T:
    """Do blocking work without holding up the event loop; where there are no threads, it is held up.

    The work sees the caller's context variables; its changes to them stay its own.
    """
    import asyncio  # takes longer than the guarded interpreter, which looks here for CAN_START alone

    if CAN_START:
        return await asyncio.to_thread(awaitable, work)
    await asyncio.sleep(0)  # what waits for the loop goes first
    return stand_in(work)


def awaitable(work: Callable[[], T]) -> T:
    """Do work, with another error for ``StopIteration``: a future cannot hold it, and would never be done."""
    try:
        return work()
    except StopIteration as error:
        raise RuntimeError("a function raised StopIteration, which ends no wait (PEP 479)") from error


def stand_in(work: Callable[[], T]) -> T:
    """Do the work of a thread in this one, where none can be started."""
    context = copy_context()
    context.run(_standing_in.set, True)
    return context.run(awaitable, work)


def blocks_the_loop() -> bool:
    """Return whether this code stands in for a thread: awaiting anything here would wait for ever."""
    return _standing_in.get()


def in_thread(work: Callable[[], T], name: str = "agex action") -> asyncio.Future[T]:
    """Run *work* in a thread of its own, with the caller's context variables; it is a daemon.

    It is no pool: work that cannot be stopped would keep a thread of it for good. Where there are
    no threads, the event loop stands still meanwhile.
    """
    import asyncio

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
            result = context.run(awaitable, work) if CAN_START else context.run(stand_in, work)
        except BaseException as raised:  # noqa: BLE001 - it is raised where the future is awaited
            error = raised
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    if CAN_START:
        threading.Thread(target=run, name=name, daemon=True).start()
    else:
        loop.call_later(0, run)  # not before what waits for the loop: a page paints
    return future
