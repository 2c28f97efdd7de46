"""Content that was used last, in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict

__all__ = ["Recent"]


class Recent:
    """Content by its digest or address, up to some bytes. Safe to share between threads.

    Args:
        max_bytes: how much is held.
        largest: how many bytes a content has at most that is held; None for any.
    """

    def __init__(self, max_bytes: int, *, largest: int | None = None) -> None:
        self._max_bytes = max_bytes
        self._largest = max_bytes if largest is None else largest
        self._size = 0
        self._held: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: bytes) -> bytes | None:
        """Return the content held under a digest, and mark it as used last."""
        with self._lock:
            content = self._held.get(digest)
            if content is not None:
                self._held.move_to_end(digest)
            return content

    def add(self, digest: bytes, content: bytes) -> None:
        """Hold content, and let go of what was not used for longest."""
        if len(content) > self._largest:
            return
        with self._lock:
            self._take(digest)
            self._held[digest] = content
            self._size += len(content)
            self._shrink()

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._held.clear()
            self._size = 0

    def _shrink(self) -> None:
        # Where a loop that ends a `with` block jumps back, CPython 3.13 does not count as in that block. The
        # time limit of a guest that reads a value may strike there, and the lock would stay locked.
        while self._size > self._max_bytes:
            self._take(next(iter(self._held)))

    def _take(self, digest: bytes) -> None:
        content = self._held.pop(digest, None)
        if content is not None:
            self._size -= len(content)
