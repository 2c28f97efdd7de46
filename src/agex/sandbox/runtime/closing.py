"""The end of asynchronous generators of a guest's that were not read to their end.

An event loop closes one that is dropped in a task of its own, and those that are left when it ends itself. A
``finally`` that raises ``SystemExit`` there ends the loop of the host. So a guest's are closed by a coroutine
from which none gets out, and the loop is not told of those that are there: each is closed when it is dropped.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import types
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from agex.sandbox.runtime.asyncio_cleanup import no_exit
from agex.sandbox.runtime.limits import RUNNING

if TYPE_CHECKING:
    import asyncio

__all__ = ["asked", "closed_by", "watch_generators"]

Generator = types.AsyncGeneratorType[Any, Any]


def watch_generators() -> None:
    """Have what a guest drops closed so, for as long as the event loop of this thread runs, if one does."""
    begun, dropped = sys.get_asyncgen_hooks()
    if begun is None or dropped is None or getattr(dropped, "func", None) is _dropped:
        return
    import asyncio  # somebody has: there is an event loop

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # one of another kind
        return
    sys.set_asyncgen_hooks(functools.partial(_begun, begun), functools.partial(_dropped, loop, dropped))


def _begun(tell: Callable[[Any], object], generator: Any) -> None:
    if not _is_guests(generator):
        tell(generator)


def _dropped(loop: asyncio.AbstractEventLoop, tell: Callable[[Any], object], generator: Any) -> None:
    if not _is_guests(generator):
        tell(generator)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(_close_in, loop, generator)  # a collection may come in any thread


def _is_guests(generator: Generator) -> bool:
    frame = generator.ag_frame
    return frame is not None and frame.f_builtins.get("stop!") is RUNNING


def _close_in(loop: asyncio.AbstractEventLoop, generator: Generator) -> None:
    loop.create_task(_close(generator)).add_done_callback(asked)


def asked(task: asyncio.Future[Any]) -> None:
    """Ask a guest's task for its exception.

    Where nobody does, the host's event loop reports it when the task is dropped: in the midst of a run, where
    the host's log cannot open its files.
    """
    if not task.cancelled():
        task.exception()


async def _close(generator: Generator) -> None:
    with no_exit():
        await generator.aclose()


def closed_by(coro: Any) -> Generator | None:
    """Give the asynchronous generator that a task's coroutine closes; None if it does something else."""
    if type(coro) is types.CoroutineType and coro.cr_code is _close.__code__:
        return None if coro.cr_frame is None else coro.cr_frame.f_locals["generator"]
    if type(coro) is not _CLOSING:
        return None
    return next((each for each in gc.get_referents(coro) if type(each) is types.AsyncGeneratorType), None)


async def _generator() -> AsyncGenerator[None, None]:
    yield


_aclose = _generator().aclose()
_CLOSING: type = type(_aclose)
with contextlib.suppress(StopIteration):
    _aclose.send(None)  # an interpreter warns of one that was never awaited
