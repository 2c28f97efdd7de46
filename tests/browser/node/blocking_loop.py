"""An event loop that blocks, for tests in Pyodide: its own can only be awaited from JavaScript."""

from __future__ import annotations

import asyncio
import time
from typing import Any


class _NoSelector:
    """There is nothing to select from: no sockets, no threads. Waiting is sleeping."""

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("Everything waits, and nothing will ever happen in this event loop.")
        time.sleep(timeout)
        return []

    def close(self) -> None:
        pass


class BlockingLoop(asyncio.BaseEventLoop):
    """Runs callbacks and timers until a coroutine is done, without leaving Python."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _NoSelector()

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        pass  # nobody else could have called


class _Policy(asyncio.events._BaseDefaultEventLoopPolicy):
    _loop_factory = BlockingLoop

    def get_event_loop(self) -> asyncio.AbstractEventLoop:
        if self._local._loop is None:  # Pyodide asks for one wherever it makes a proxy of a promise
            self.set_event_loop(self.new_event_loop())
        return super().get_event_loop()


def install() -> None:
    """Have asyncio make such loops, in a thread where Pyodide's own loop does not count as running."""
    asyncio._set_running_loop(None)
    asyncio.events._set_event_loop_policy(_Policy())
