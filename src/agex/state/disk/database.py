"""The SQLite file of a directory: one connection, its errors in our words, one transaction at a time."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from agex.errors import StateCorrupt, StateError, StateFull
from agex.state.disk.readonly_database import Reader, may_write
from agex.state.disk.store_files import Standing, require_own

__all__ = ["Database", "full_disk"]

_PATIENCE = 30.0  # seconds to wait for another process that writes; its commit takes milliseconds
_STEP = 0.0005  # seconds between two looks whether it has ended
_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Database:
    """A connection that threads take turns with. After a fork the child opens its own.

    Args:
        path: the file.
        durable: whether a transaction waits until the disk has it.
        verify: looks at what was opened, before anything is read of it.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path, *, durable: bool, verify: Callable[[sqlite3.Connection], None]) -> None:
        self.path = path
        self._verify = verify
        self._reader: Reader | None = None
        self._standing: Standing | None = None
        self._synchronous = "FULL" if durable else "NORMAL"
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._abandoned: list[sqlite3.Connection] = []
        self._process = 0
        self._patience = 0.0

    @property
    def is_readonly(self) -> bool:
        """Whether this user may only read it, as it was when it was opened."""
        return self._reader is not None

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Yield the connection, in a transaction that sees one moment of the store.

        Raises:
            StateCorrupt: the file is damaged.
            StateError: it cannot be read.
        """
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Yield the connection, in a transaction of the only writer; an error rolls it back.

        Raises:
            StateFull: the disk is full.
            StateCorrupt: the file is damaged.
            StateError: it cannot be written, or is not where it was opened.
        """
        return self._transaction("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            self._reader = self._standing = None
            if self._process == os.getpid():
                connection.close()
            else:
                self._abandoned.append(connection)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                connection = self._open()
                if connection.in_transaction and begin == "BEGIN":  # to read in a transaction is part of it
                    yield connection
                    return
                standing = None if begin == "BEGIN" else self._standing_to_write()
                self._begin(connection, begin)
                try:
                    if standing is not None:
                        standing.require()
                    yield connection
                    connection.execute("COMMIT")
                except BaseException as error:
                    # SQLite ends some transactions by itself, a full disk's for one.
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    if isinstance(error, StateError | sqlite3.Error):
                        self._require_current()
                    raise
                self._require_current()
                if standing is not None:  # what is written to a file without a name is lost
                    standing.require()
            except sqlite3.Error as error:
                raise _in_our_words(error, self.path) from error
            except UnicodeDecodeError as error:  # of a damaged schema, or of SQLite's message about it
                raise _damaged(self.path, "it holds text that is none") from error

    def _begin(self, connection: sqlite3.Connection, begin: str) -> None:
        """Begin a transaction; wait for another writer in small steps.

        SQLite's own steps grow to a tenth of a second, whereas a commit takes a millisecond: who
        waits beside a process that writes much would wait for dozens of its commits.
        """
        self._be_patient(connection, _PATIENCE if begin == "BEGIN" else 0)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                connection.execute(begin)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_STEP)
            else:
                return

    def _be_patient(self, connection: sqlite3.Connection, seconds: float) -> None:
        if seconds != self._patience:
            connection.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")
            self._patience = seconds

    def _standing_to_write(self) -> Standing:
        if self._standing is None:
            raise StateError(
                f"{self.path} cannot be written, only read; make it and its directory writable for this user."
            )
        return self._standing

    def _require_current(self) -> None:
        """Refuse what was read without locks while somebody wrote."""
        if self._reader is not None and not self._reader.is_current():
            raise StateError(f"{self.path} was changed while it was read; read it again.")

    def _open(self) -> sqlite3.Connection:
        known = self._connection
        if known is not None and self._process == os.getpid():
            if self._reader is None or known.in_transaction or self._reader.is_current():
                return known
            self.close()
        require_own(self.path.parent)
        reader = None if may_write(self.path) else Reader(self.path)
        connection = self._connected() if reader is None else reader.connection
        try:
            # Functions of SQLite that a stranger's schema names are not called.
            connection.execute("PRAGMA trusted_schema=OFF")
            if reader is None:
                _use_wal(connection)
                connection.execute(f"PRAGMA synchronous={self._synchronous}")
            self._verify(connection)
            log = self.path.with_name(f"{self.path.name}-wal")
            self._standing = Standing((self.path, log)) if reader is None else None
        except BaseException:
            connection.close()
            raise
        # One that a fork brought along is kept, unused: SQLite forbids even closing it here.
        if self._connection is not None:
            self._abandoned.append(self._connection)
        self._connection, self._process, self._patience = connection, os.getpid(), _PATIENCE
        self._reader = reader
        return connection

    def _connected(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path,
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )


def full_disk(error: OSError, path: Path) -> StateFull | None:
    """Return the error to raise where an operating system's error means a full disk; None for others."""
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
    # The rest are damaged pages, and statements that no longer fit a damaged schema.
    return _damaged(path, error)


def _damaged(path: Path, why: object) -> StateCorrupt:
    return StateCorrupt(f"{path} is damaged ({why}); `agex fsck {path.parent}` lists what is wrong with it.")


def _no_space(path: Path) -> bool:
    try:
        found = os.statvfs(path.parent)
    except (AttributeError, OSError):
        return False
    return found.f_bavail < 16
