"""Reading a database that this user may not write, on a read-only disk for one.

SQLite reads a write-ahead log only beside an index in shared memory, which it must be able to make.
So there are three ways, by the files beside the database:

* a log and its index: another process may be writing, and SQLite reads both;
* a log alone: a writer died and left it; it is read in a copy;
* no log: the database is all there is.

The last two lock nothing, so a reader checks afterwards whether the store was written meanwhile.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

__all__ = ["Reader", "may_write"]

_BESIDE = ("", "-wal", "-journal")


def may_write(path: Path) -> bool:
    """Return whether this user may write a database and its log; True also where there is none yet."""
    effective = os.access in os.supports_effective_ids
    return not path.exists() or all(
        os.access(one, os.W_OK, effective_ids=effective) for one in (path, path.parent)
    )


class Reader:
    """A connection that only reads.

    Attributes:
        connection: to the database, or to a copy of it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._look()
        log = path.with_name(f"{path.name}-wal")
        index = path.with_name(f"{path.name}-shm")
        self._locks = _is_filled(log) and index.exists()
        if self._locks:
            self.connection = _connected(path, "mode=ro")
        elif any(_is_filled(path.with_name(path.name + end)) for end in _BESIDE[1:]):
            self.connection = self._copied()
        else:
            self.connection = _connected(path, "immutable=1")

    def is_current(self) -> bool:
        """Return whether what was read is what is there: always so where SQLite takes locks."""
        return self._locks or self._seen == self._look()

    def _look(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for end in _BESIDE:
            try:
                seen = self._path.with_name(self._path.name + end).lstat()
            except FileNotFoundError:
                found.append(None)
            else:
                found.append((seen.st_ino, seen.st_size, seen.st_mtime_ns))
        return found

    def _copied(self) -> sqlite3.Connection:
        with tempfile.TemporaryDirectory(prefix="agex-store-", ignore_cleanup_errors=True) as directory:
            copy = Path(directory, self._path.name)
            for end in _BESIDE:
                if self._path.with_name(self._path.name + end).exists():
                    shutil.copyfile(
                        self._path.with_name(self._path.name + end), copy.with_name(copy.name + end)
                    )
            connection = _connected(copy, "mode=rw")
            try:
                connection.execute("PRAGMA wal_checkpoint")  # opens all files: their names may go
            except BaseException:
                connection.close()
                raise
            return connection


def _connected(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?{how}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def _is_filled(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
