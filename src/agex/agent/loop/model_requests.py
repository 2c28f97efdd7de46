"""Waiting for a model: to its answer, to the limit of the request, or to the end of the call.

A provider may never answer, and a function may hang. The wait ends then; a request is given up, a function's
thread is left to itself and does not keep the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from agex._interpreter import threads
from agex.models import background
from agex.models.base import Model, ModelError, Reply, Request

if TYPE_CHECKING:
    from agex.agent.call.call import Call
    from agex.models.surrogates import Joined

__all__ = ["aask", "ask"]


def ask(model: Model, request: Request, listen: Joined | None, call: Call, seconds: float) -> Reply:
    """Ask a model and wait in this thread, in which *listen* is called.

    Raises:
        ModelError: the request failed, or took longer than *seconds*.
        TaskCancelled: the call was cancelled.
    """
    if not threads.CAN_START:
        return _told(model.ask(request, listen), listen)
    news: SimpleQueue[str | None] = SimpleQueue()
    wake = lambda _=None: news.put(None)  # noqa: E731
    future = _begun(model, request, news.put if listen is not None else None)
    future.add_done_callback(wake)
    deadline = time.monotonic() + seconds
    try:
        with call.on_cancel(wake):
            while not (future.done() and news.empty()):
                call.check()
                call.pass_gate(begins=True)
                piece = _next(news, deadline, seconds)
                if piece is not None and listen is not None:
                    listen(piece)
        reply, error = future.result()
        if error is not None:
            raise error
        assert reply is not None
        return _told(reply, listen)
    finally:
        future.cancel()  # without effect on one that is done


async def aask(model: Model, request: Request, listen: Joined | None, seconds: float) -> Reply:
    """Like :func:`ask`, without blocking the event loop; cancelling it gives the request up."""
    limit = asyncio.timeout(None if seconds == math.inf else seconds)
    try:
        async with limit:
            return _told(await model.aask(request, listen), listen)
    except TimeoutError:
        if not limit.expired():
            raise
        raise _late(seconds) from None


def _told(reply: Reply, listen: Joined | None) -> Reply:
    if listen is not None:
        listen.end()
    return reply


def _next(news: SimpleQueue[str | None], deadline: float, seconds: float) -> str | None:
    try:
        left = min(deadline - time.monotonic(), threading.TIMEOUT_MAX)
        return news.get(timeout=max(0.0, left))
    except Empty:
        raise _late(seconds) from None


def _late(seconds: float) -> ModelError:
    return ModelError(f"no answer within {seconds:g} s (llm_timeout)", retryable=True)


_Outcome = tuple[Reply | None, BaseException | None]


def _begun(model: Model, request: Request, on_text: Callable[[str], None] | None) -> Future[_Outcome]:
    """Ask a model beside this thread; cancelling the future gives the request up.

    One that can be asked on any event loop is asked on the private one, any other in a thread.
    """
    if model.runs_on_any_loop:
        return background.submit(_asked(model, request, on_text))
    future: Future[_Outcome] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome: _Outcome = context.run(model.ask, request, on_text), None
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is waited for
            outcome = None, error
        if future.set_running_or_notify_cancel():
            future.set_result(outcome)

    threading.Thread(target=work, name="agex request", daemon=True).start()
    return future


async def _asked(model: Model, request: Request, on_text: Callable[[str], None] | None) -> _Outcome:
    try:
        return await model.aask(request, on_text), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - an interrupt must not end the loop of all requests
        return None, error
