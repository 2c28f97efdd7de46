"""A store in a PostgreSQL database, for processes on many machines."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, LiteralString

from agex.errors import StateError, StateFull
from agex.state.kv import KVStore

__all__ = ["PostgresStore"]

_LOCK = 0x61676578  # "agex": of all who make the table at once, one goes first


class PostgresStore(KVStore):
    """Keep everything in one table of a PostgreSQL database, which is made if it is not there.

    A commit is on disk when it returns, unless the server is set up with
    ``synchronous_commit = off``. Threads take turns with one connection; it is opened anew
    when the server had closed it.

    Args:
        dsn: as libpq takes it: ``postgresql://user:password@host/database`` or ``host=... dbname=...``.
        table: the table's name.

    Raises:
        StateError: the server cannot be reached, or refuses.
    """

    def __init__(self, dsn: str, *, table: str = "agex_kv") -> None:
        try:
            import psycopg
            import psycopg.sql
        except ImportError as error:
            raise StateError(
                "A store in PostgreSQL needs a package that is not installed: "
                "run `pip install agex[postgres]`."
            ) from error
        self._library: Any = psycopg
        self._dsn = dsn
        self._lock = threading.RLock()
        self._connection: Any = None
        self._sql = {
            name: psycopg.sql.SQL(text).format(table=psycopg.sql.Identifier(table))
            for name, text in _STATEMENTS.items()
        }
        with self._cursor() as cursor, cursor.connection.transaction():
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            cursor.execute(self._sql["create"])

    def get(self, key: str) -> bytes | None:
        with self._cursor() as cursor:
            row = cursor.execute(self._sql["get"], (key.encode(),)).fetchone()
        return None if row is None else bytes(row[0])

    def set(self, key: str, value: bytes) -> None:
        with self._cursor() as cursor:
            cursor.execute(self._sql["set"], (key.encode(), value))

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        with self._cursor() as cursor:
            rows = cursor.execute(self._sql["get_many"], ([key.encode() for key in keys],)).fetchall()
        return {bytes(key).decode(): bytes(value) for key, value in rows}

    def set_many(self, items: Mapping[str, bytes]) -> None:
        # In one order everywhere, so that two writers of the same keys do not wait for each other.
        rows = [(key.encode(), items[key]) for key in sorted(items)]
        with self._cursor() as cursor, cursor.connection.transaction():
            cursor.executemany(self._sql["set"], rows)

    def remove(self, key: str) -> None:
        self.remove_many([key])

    def remove_many(self, keys: Iterable[str]) -> None:
        with self._cursor() as cursor:
            cursor.execute(self._sql["remove"], ([key.encode() for key in sorted(keys)],))

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        for key in self.keys(prefix):
            value = self.get(key)
            if value is not None:
                yield key, value

    def keys(self, prefix: str = "") -> Iterator[str]:
        low = prefix.encode()
        with self._cursor() as cursor:
            rows = cursor.execute(self._sql["keys"], (low, low + b"\xff")).fetchall()
        for (key,) in rows:
            yield bytes(key).decode()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        with self._cursor() as cursor:
            return cursor.execute(self._sql["contains"], (key.encode(),)).fetchone() is not None

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        with self._cursor() as cursor:
            if expected is None:
                cursor.execute(self._sql["add"], (key.encode(), value))
            else:
                cursor.execute(self._sql["swap"], (value, key.encode(), expected))
            return bool(cursor.rowcount == 1)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with self._lock:
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = self._library.connect(self._dsn, autocommit=True)
                with self._connection.cursor() as cursor:
                    yield cursor
            except self._library.errors.DiskFull as error:
                raise StateFull(f"The disk of the PostgreSQL server is full: {error}") from error
            except self._library.Error as error:
                raise StateError(f"The PostgreSQL server refuses or cannot be reached: {error}") from error


_STATEMENTS: dict[str, LiteralString] = {
    "create": "CREATE TABLE IF NOT EXISTS {table} (key bytea PRIMARY KEY, value bytea NOT NULL)",
    "get": "SELECT value FROM {table} WHERE key = %s",
    "get_many": "SELECT key, value FROM {table} WHERE key = ANY(%s)",
    "set": "INSERT INTO {table} VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    "add": "INSERT INTO {table} VALUES (%s, %s) ON CONFLICT (key) DO NOTHING",
    "swap": "UPDATE {table} SET value = %s WHERE key = %s AND value = %s",
    "remove": "DELETE FROM {table} WHERE key = ANY(%s)",
    "keys": "SELECT key FROM {table} WHERE key >= %s AND key < %s",
    "contains": "SELECT 1 FROM {table} WHERE key = %s",
}
