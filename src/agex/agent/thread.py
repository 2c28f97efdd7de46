"""Running blocking work beside an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run *work* in a thread of its own, with the caller's context variables.

    It is no pool: an action waits for the tasks that it calls, so that a bounded number of
    threads could all be waiting for one more.
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
