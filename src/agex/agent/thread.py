"""Running blocking work beside an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import TypeVar
from weakref import WeakKeyDictionary

__all__ = ["LIMIT", "admitted", "in_thread"]

T = TypeVar("T")

LIMIT = min(32, (os.cpu_count() or 1) + 4)
"""Actions of one event loop that run at a time: as many as asyncio's own pool has threads."""

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
_inside: ContextVar[bool] = ContextVar("agex_inside_action", default=False)


@asynccontextmanager
async def admitted() -> AsyncIterator[None]:
    """Wait until fewer than ``LIMIT`` actions run on this event loop, and count as one for the block.

    An action of a task that another action called counts as a part of that one: it must not wait
    for the place of the one that waits for it.
    """
    if _inside.get():
        yield
        return
    async with _gates.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(LIMIT)):
        token = _inside.set(True)
        try:
            yield
        finally:
            _inside.reset(token)


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run *work* in a thread of its own, with the caller's context variables.

    It is no pool: work that cannot be stopped would hold a place in it for good.
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
            result = context.run(work)
        except BaseException as raised:  # noqa: BLE001 - it is raised where the future is awaited
            error = raised
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="agex action", daemon=True).start()
    return future
