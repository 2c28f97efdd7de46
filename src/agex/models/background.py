"""One event loop in one daemon thread, for all provider input and output.

HTTP clients belong to the loop they were made in. A private loop lets one client serve sync
callers, callers inside a running loop and many threads alike. It starts when first needed; a
forked child starts its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

__all__ = ["generation", "submit"]

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_generation = 0


def submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    """Run *coroutine* on the private loop; cancelling the future cancels it there."""
    return asyncio.run_coroutine_threadsafe(coroutine, _running_loop())


def generation() -> int:
    """Count the forks behind this process: what was bound to an older loop must be made again."""
    return _generation


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="agex-models", daemon=True).start()
            if _generation == 0:
                os.register_at_fork(after_in_child=_forget)
        return _loop


def _forget() -> None:
    # The thread is not there in the child, and the lock may have been held by it.
    global _lock, _loop, _generation  # noqa: PLW0603
    _lock, _loop = threading.Lock(), None
    _generation += 1
