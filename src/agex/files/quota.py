"""The limit on the bytes of a workspace."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable

__all__ = ["Quota", "exceeded"]

_MB = 1024 * 1024


class Quota:
    """Bytes of all files together, and how many there may be.

    Args:
        max_size_mb: MiB.
        count: counts the bytes that are there.

    They are counted before the first write. From then on the account is kept, and counted anew before a
    write is refused: others may have removed files of the directory.
    """

    def __init__(self, max_size_mb: float, count: Callable[[], int]) -> None:
        self.lock = threading.RLock()
        """Held from the question whether there is room until the file is written."""
        self.most = int(max_size_mb * _MB)
        self._count = count
        self._used: int | None = None

    def require(self, path: str, more: int) -> None:
        """Raise ``OSError`` where *more* bytes would pass the limit."""
        with self.lock:
            if self._used is None or self._used + more > self.most:
                self._used = self._count()
            total = self._used + more
        if more > 0 and total > self.most:
            raise exceeded(path, total, self.most)

    def add(self, more: int) -> None:
        """Take note of bytes that were written; less than nothing for bytes that went."""
        with self.lock:
            if self._used is not None:
                self._used += more


def exceeded(path: str, total: int, most: int) -> OSError:
    """Return the error of a write that would pass the limit."""
    return OSError(
        errno.ENOSPC,
        f"VFS size limit exceeded: {total:,} bytes would be more than the {most:,} that the "
        "workspace may hold; remove files first",
        path,
    )
