"""Whether this interpreter can start threads, and how blocking work is done beside an event loop.

A browser tab has no threads: what would wait in one runs in the event loop itself there, which
stands still meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

__all__ = ["CAN_START", "blocks_the_loop", "off_loop", "stand_in"]

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

    The work sees the caller's context variables; what it sets of them stays its own.
    """
    import asyncio  # takes longer than the guarded interpreter, which looks here for CAN_START alone

    if CAN_START:
        return await asyncio.to_thread(work)
    await asyncio.sleep(0)  # what waits for the loop goes first
    return stand_in(work)


def stand_in(work: Callable[[], T]) -> T:
    """Do in this thread what another would do, had there been one to start."""
    context = copy_context()
    context.run(_standing_in.set, True)
    return context.run(work)


def blocks_the_loop() -> bool:
    """Tell whether this code stands in for a thread: awaiting anything here would wait for ever."""
    return _standing_in.get()
