"""Content that was used last, in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict

__all__ = ["Recent"]


class Recent:
    """Content by its digest or address, up to some bytes. Safe to share between threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
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
        with self._lock:
            self._take(digest)
            self._held[digest] = content
            self._size += len(content)
            self._shrink()

    def _shrink(self) -> None:
        # Where a loop that ends a `with` block jumps back, CPython 3.13 does not count as in that block. The
        # time limit of a guest that reads a value may strike there, and the lock would stay locked.
        while self._size > self._max_bytes:
            self._take(next(iter(self._held)))

    def _take(self, digest: bytes) -> None:
        content = self._held.pop(digest, None)
        if content is not None:
            self._size -= len(content)
