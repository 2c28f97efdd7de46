"""Who may talk to a worker: one thread at a time, and while the host answers it, whoever works for it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType

__all__ = ["Turn"]


class Turn:
    """A lock that its holder can enter again, and lend for a while.

    What the host does for a worker may call functions of the guest in another thread: a task that
    runs in an event loop, a pool of threads. They talk to the worker one after the other, and are done
    before the holder talks to it again.
    """

    def __init__(self) -> None:
        self._locks = [threading.RLock()]

    def __enter__(self) -> None:
        while True:
            lock = self._locks[-1]
            lock.acquire()
            if lock is self._locks[-1]:
                return
            lock.release()  # it was lent, or given back, meanwhile

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks[-1].release()

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Let others have it, for the length of a block of its holder's."""
        inner = threading.RLock()
        self._locks.append(inner)
        try:
            yield
        finally:
            with inner:  # whoever has it is done first
                self._locks.remove(inner)
