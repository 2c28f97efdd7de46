"""A store in a PostgreSQL database, for processes on many machines."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, LiteralString, TypeVar

from agex.errors import StateError, StateFull
from agex.state.kv.store import KVStore

__all__ = ["PostgresStore"]

T = TypeVar("T")

_BATCH = 200  # keys of one request
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
                'run `pip install "agex-py[postgres]"`.'
            ) from error
        self._arguments = {"dsn": dsn, "table": table}
        self._library: Any = psycopg
        self._dsn = dsn
        self._lock = threading.Lock()
        self._connections: list[tuple[int, Any]] = []  # the last one is used; each with its process
        weakref.finalize(self, _close, self._connections)
        self._sql = {
            name: psycopg.sql.SQL(text).format(table=psycopg.sql.Identifier(table))
            for name, text in _STATEMENTS.items()
        }

        def create(cursor: Any) -> None:
            with cursor.connection.transaction():
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                cursor.execute(self._sql["create"])

        self._ask(create)

    def _opened_with(self) -> dict[str, Any]:
        return self._arguments

    def get(self, key: str) -> bytes | None:
        row = self._ask(lambda cursor: cursor.execute(self._sql["get"], (key.encode(),)).fetchone())
        return None if row is None else bytes(row[0])

    def set(self, key: str, value: bytes) -> None:
        self._ask(lambda cursor: cursor.execute(self._sql["set"], (key.encode(), value)))

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        wanted = [key.encode() for key in keys]
        rows = self._ask(lambda cursor: cursor.execute(self._sql["get_many"], (wanted,)).fetchall())
        return {bytes(key).decode(): bytes(value) for key, value in rows}

    def set_many(self, items: Mapping[str, bytes]) -> None:
        self._set_many(items, "set_many")

    def stage(
        self,
        items: Mapping[str, bytes],
        *,
        look: Collection[str] = (),
        then: Mapping[str, bytes] | None = None,
    ) -> dict[str, bytes]:
        then = then or {}
        if max(len(items), len(then)) > _BATCH or not self._library.Pipeline.is_supported():
            self._set_many(items, "stage")
            found = self.get_many(look) if look else {}
            self._set_many(then, "stage")
            return found
        rows = self._ask(partial(self._stage_together, items, [key.encode() for key in look], then))
        return {bytes(key).decode(): bytes(value) for key, value in rows}

    def _stage_together(
        self, items: Mapping[str, bytes], look: list[bytes], then: Mapping[str, bytes], cursor: Any
    ) -> list[tuple[Any, Any]]:
        """Send all in one request: the server carries out each statement when the one before is committed."""
        with cursor.connection.pipeline() as pipeline:
            rows = cursor.connection.cursor()
            if items:
                cursor.execute(self._sql["stage"], _columns(items))
                pipeline.sync()
            if look:
                rows.execute(self._sql["get_many"], (look,))
            if then:
                cursor.execute(self._sql["stage"], _columns(then))
            pipeline.sync()
            return rows.fetchall() if look else []

    def unstage(self, key: str) -> None:
        self._ask(partial(_execute, self._sql["unstage"], ([key.encode()],)))

    def _set_many(self, items: Mapping[str, bytes], statement: str) -> None:
        # In one order everywhere, so that two writers of the same keys do not wait for each other. Each batch
        # is one statement: a transaction that lost its client would keep the rows from everybody.
        keys = sorted(items)
        for start in range(0, len(keys), _BATCH):
            batch = {key: items[key] for key in keys[start : start + _BATCH]}
            self._ask(partial(_execute, self._sql[statement], _columns(batch)))

    def remove(self, key: str) -> None:
        self.remove_many([key])

    def remove_many(self, keys: Iterable[str]) -> None:
        gone = [key.encode() for key in sorted(keys)]
        self._ask(lambda cursor: cursor.execute(self._sql["remove"], (gone,)))

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        keys = self.keys(prefix)
        while batch := list(islice(keys, _BATCH)):
            yield from self.get_many(batch).items()

    def keys(self, prefix: str = "") -> Iterator[str]:
        low = prefix.encode()
        bounds = (low, low + b"\xff")  # no UTF-8 text holds the byte 0xff
        rows = self._ask(lambda cursor: cursor.execute(self._sql["keys"], bounds).fetchall())
        for (key,) in rows:
            yield bytes(key).decode()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        row = self._ask(lambda cursor: cursor.execute(self._sql["contains"], (key.encode(),)).fetchone())
        return row is not None

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        def swap(cursor: Any) -> bool:
            if expected is None:
                cursor.execute(self._sql["add"], (key.encode(), value))
            else:
                cursor.execute(self._sql["swap"], (value, key.encode(), expected))
            return bool(cursor.rowcount == 1)

        # Not tried again: the first try may have come through, and nobody would know.
        return self._ask(swap, again=False)

    def close(self) -> None:
        with self._lock:
            _close(self._connections)

    def _ask(self, work: Callable[[Any], T], *, again: bool = True) -> T:
        """Do something with a cursor, with *again* a second time where the server had hung up meanwhile."""
        with self._lock:
            while True:
                try:
                    with self._connected().cursor() as cursor:
                        return work(cursor)
                except self._library.errors.DiskFull as error:
                    raise StateFull(f"The disk of the PostgreSQL server is full: {error}") from error
                except self._library.Error as error:
                    if not (again and self._connections and self._connections[-1][1].closed):
                        raise StateError(
                            f"The PostgreSQL server refuses or cannot be reached: {error}"
                        ) from error
                    again = False

    def _connected(self) -> Any:
        # One that a fork brought along is kept, unused: letting it go would end the parent's.
        process, connection = self._connections[-1] if self._connections else (0, None)
        if connection is None or connection.closed or process != os.getpid():
            self._connections[:] = [held for held in self._connections if not held[1].closed]
            connection = self._library.connect(self._dsn, autocommit=True)
            self._connections.append((os.getpid(), connection))
        return connection


def _execute(query: Any, parameters: Any, cursor: Any) -> None:
    cursor.execute(query, parameters)


def _columns(items: Mapping[str, bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return keys and values, in the order of the keys."""
    keys = sorted(items)
    return [key.encode() for key in keys], [bytes(items[key]) for key in keys]


def _close(connections: list[tuple[int, Any]]) -> None:
    """Close the connections of this process."""
    for process, connection in connections:
        if process == os.getpid():
            connection.close()


_STATEMENTS: dict[str, LiteralString] = {
    "create": "CREATE TABLE IF NOT EXISTS {table} (key bytea PRIMARY KEY, value bytea NOT NULL)",
    "get": "SELECT value FROM {table} WHERE key = %s",
    "get_many": "SELECT key, value FROM {table} WHERE key = ANY(%s)",
    "set": "INSERT INTO {table} VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    "set_many": (
        "INSERT INTO {table} SELECT * FROM unnest(%b::bytea[], %b::bytea[]) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    ),
    # The log is written in order: the next transaction that waits for its own record waits for these, too.
    "stage": (
        "WITH later AS (SELECT set_config('synchronous_commit', 'off', true)) "
        "INSERT INTO {table} SELECT * FROM unnest(%b::bytea[], %b::bytea[]) WHERE EXISTS (SELECT FROM later) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    ),
    "unstage": (
        "WITH later AS (SELECT set_config('synchronous_commit', 'off', true)) "
        "DELETE FROM {table} WHERE key = ANY(%s) AND EXISTS (SELECT FROM later)"
    ),
    "add": "INSERT INTO {table} VALUES (%s, %s) ON CONFLICT (key) DO NOTHING",
    "swap": "UPDATE {table} SET value = %s WHERE key = %s AND value = %s",
    "remove": "DELETE FROM {table} WHERE key = ANY(%s)",
    "keys": "SELECT key FROM {table} WHERE key >= %s AND key < %s",
    "contains": "SELECT 1 FROM {table} WHERE key = %s",
}
