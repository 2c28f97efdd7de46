"""The SQLite file of a directory: one connection, its errors in our words, one transaction at a time."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agex.errors import StateCorrupt, StateError, StateFull

__all__ = ["Database", "full_disk"]

_PATIENCE = 30.0  # seconds to wait for another process that writes; its commit takes milliseconds
_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Database:
    """A connection that threads take turns with. After a fork the child opens its own.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.path = path
        self._synchronous = "FULL" if durable else "NORMAL"
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, in a transaction that sees one moment of the store.

        Raises:
            StateCorrupt: the file is damaged.
            StateError: it cannot be read.
        """
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection, in a transaction of the only writer; with an error nothing of it is kept.

        Raises:
            StateFull: the disk is full.
            StateCorrupt: the file is damaged.
            StateError: it cannot be written.
        """
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def plain(self) -> Iterator[sqlite3.Connection]:
        """Give the connection outside of a transaction."""
        with self._lock, self._translated():
            yield self._open()

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._process == os.getpid():
                connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._translated():
            connection = self._open()
            if connection.in_transaction and begin == "BEGIN":  # reading within a transaction is part of it
                yield connection
                return
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # SQLite ends some transactions by itself, a full disk's for one.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        connection = sqlite3.connect(
            self.path,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            _use_wal(connection)
            connection.execute(f"PRAGMA synchronous={self._synchronous}")
        except BaseException:
            connection.close()
            raise
        # One that a fork brought along is left as it is: closing it would drop the parent's locks.
        self._connection, self._process = connection, os.getpid()
        return connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _in_our_words(error, self.path) from error
        except UnicodeDecodeError as error:  # of a damaged schema, or of SQLite's message about it
            raise _damaged(self.path, "it holds text that is none") from error


def full_disk(error: OSError, path: Path) -> StateFull | None:
    """Return what to raise where an operating system's error says that a disk is full."""
    if error.errno in _FULL_DISK:
        return StateFull(
            f"The disk of {path} is full; nothing was written. Free some space and commit again."
        )
    return None


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, which SQLite refuses while another process does the same."""
    for attempt in range(100):
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or attempt == 99:
                raise
            time.sleep(0.01)
        else:
            if mode != "wal":
                raise StateError(
                    f"The file system here has no shared memory for SQLite (journal mode {mode!r}); "
                    "put the store on a local disk."
                )
            return


def _in_our_words(error: sqlite3.Error, path: Path) -> StateError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the primary code
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _no_space(path)):
        return StateFull(
            f"The disk of {path} is full; nothing was written. Free some space and commit again."
        )
    if code == sqlite3.SQLITE_BUSY:
        return StateError(f"Another process has been writing to {path} for {_PATIENCE:g} s; try again.")
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH}:
        return StateError(f"{path} cannot be written ({error}); make its directory writable for this user.")
    if code == sqlite3.SQLITE_IOERR:
        return StateError(f"The disk refuses to read or write {path} ({error}).")
    if code == sqlite3.SQLITE_INTERRUPT:
        return StateError(f"An operation on {path} was interrupted.")
    # What is left are damaged pages, and statements that no longer fit a damaged schema.
    return _damaged(path, error)


def _damaged(path: Path, why: object) -> StateCorrupt:
    return StateCorrupt(f"{path} is damaged ({why}); `agex fsck {path.parent}` lists what is wrong with it.")


def _no_space(path: Path) -> bool:
    try:
        found = os.statvfs(path.parent)
    except (AttributeError, OSError):
        return False
    return found.f_bavail < 16
