"""A store in a directory, that survives the process and, by default, the power."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agex.state.kv.store import KVStore

if TYPE_CHECKING:
    from agex.state.commits.journal import Journal
    from agex.state.commits.lru import Recent

__all__ = ["Disk"]

_BATCH = 500  # keys of a query; SQLite takes 999 parameters in every build


class Disk(KVStore):
    """Keep everything in a directory of its own, which is made if there is none.

    Any number of threads and processes may use it at once. It must be on a local disk:
    SQLite's log needs shared memory, which network file systems do not have.

    Args:
        path: the directory.
        size_limit: how many bytes it may hold. A commit past it is refused; nothing is ever
            dropped to make room. SQLite's log of some megabytes comes on top.
        durable: whether a commit waits until the disk has it, so that it survives the power.
            Without, a power loss may take back the last commits, but leaves the store whole.

    Raises:
        StateError: the path is a file, a directory of other things, not writable, or a store
            of a newer format; the message says what to do.
        StateCorrupt: the store is damaged.
    """

    def __init__(
        self, path: str | os.PathLike[str], size_limit: int | None = None, *, durable: bool = True
    ) -> None:
        from agex.state.disk.directory import Directory

        self._directory = Directory(path, size_limit=size_limit, durable=durable)
        self._database = self._directory.database
        self._arguments = {"path": os.path.abspath(path), "size_limit": size_limit, "durable": durable}  # noqa: PTH100

    def _opened_with(self) -> dict[str, Any]:
        return self._arguments

    def get(self, key: str) -> bytes | None:
        with self._database.reading() as db:
            row = db.execute("SELECT value FROM kv WHERE key = ?", (key.encode(),)).fetchone()
        return None if row is None else bytes(row[0])

    def set(self, key: str, value: bytes) -> None:
        self.set_many({key: value})

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        wanted = [key.encode() for key in keys]
        found: dict[str, bytes] = {}
        with self._database.reading() as db:
            for start in range(0, len(wanted), _BATCH):
                batch = wanted[start : start + _BATCH]
                marks = ",".join("?" * len(batch))
                rows = db.execute(f"SELECT key, value FROM kv WHERE key IN ({marks})", batch)  # noqa: S608
                found.update((key.decode(), bytes(value)) for key, value in rows)
        return found

    def set_many(self, items: Mapping[str, bytes]) -> None:
        with self._directory.changing() as (db, _):
            self._directory.require_space(db, sum(len(value) + 50 for value in items.values()))
            rows = ((key.encode(), value) for key, value in items.items())
            db.executemany("REPLACE INTO kv VALUES (?, ?)", rows)

    def remove(self, key: str) -> None:
        self.remove_many([key])

    def remove_many(self, keys: Iterable[str]) -> None:
        with self._directory.changing() as (db, _):
            db.executemany("DELETE FROM kv WHERE key = ?", ((key.encode(),) for key in keys))

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        keys = self.keys(prefix)
        while batch := list(islice(keys, _BATCH)):
            yield from self.get_many(batch).items()

    def keys(self, prefix: str = "") -> Iterator[str]:
        low = prefix.encode()
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT key FROM kv WHERE key >= ? AND key < ?", (low, low + b"\xff")
            ).fetchall()
        for (key,) in rows:
            yield key.decode()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        with self._database.reading() as db:
            return db.execute("SELECT 1 FROM kv WHERE key = ?", (key.encode(),)).fetchone() is not None

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        with self._directory.changing() as (db, _):
            row = db.execute("SELECT value FROM kv WHERE key = ?", (key.encode(),)).fetchone()
            if (None if row is None else bytes(row[0])) != expected:
                return False
            self._directory.require_space(db, len(value) + 50)
            db.execute("REPLACE INTO kv VALUES (?, ?)", (key.encode(), value))
            return True

    def journal(self, recent: Recent | None = None) -> Journal:
        from agex.state.disk.row_journal import RowJournal

        return RowJournal(self._directory, recent)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the store to a directory that is not there yet; see `Versioned.backup`."""
        from agex.state.disk.backup import back_up

        back_up(self._directory, Path(path).absolute())

    def close(self) -> None:
        self._directory.close()

    def __repr__(self) -> str:
        return f"Disk({str(self._directory.path)!r})"
