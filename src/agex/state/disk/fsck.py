"""Checking a directory: every row against the commit it belongs to, every commit against its hash."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from agex.errors import StateError
from agex.state.commits.digests import addresses_in
from agex.state.commits.headers import Header
from agex.state.disk.directory import Directory
from agex.state.disk.refs import Refs
from agex.state.disk.row_journal import RowJournal
from agex.state.disk.rows import CommitRow, Rows

__all__ = ["check_rows"]


def check_rows(directory: Directory) -> list[str]:
    """Return what is wrong with a store, a line each."""
    try:
        own = directory.again()
    except StateError as error:
        return [str(error)]
    try:
        with own.database.reading() as db:
            found = list(_Check(own, db).problems())
        return found + list(_damaged_chunks(own))
    except StateError as error:
        return [str(error)]
    finally:
        own.close()


class _Check:
    """One look at all rows."""

    def __init__(self, directory: Directory, db: sqlite3.Connection) -> None:
        self._directory = directory
        self._digest = directory.digest
        self._db = db
        self._rows = Rows(db, directory.digest)

    def problems(self) -> Iterator[str]:
        for (line,) in self._db.execute("PRAGMA integrity_check"):
            if line != "ok":
                yield f"state.db: {line}"
        for part in (self._names(), self._commits(), self._strays()):
            try:
                yield from part
            except (StateError, sqlite3.Error) as error:
                yield str(error)

    def _names(self) -> Iterator[str]:
        refs = Refs(self._db, self._digest, self._directory.meta(self._db))
        for name, commit in [*refs.all("branch").items(), *refs.all("tag").items()]:
            if self._rows.find(commit) is None:
                yield f"{name}: commit {commit[:12]} is gone"

    def _commits(self) -> Iterator[str]:
        for seq, header in self._db.execute("SELECT seq, header FROM commits ORDER BY seq").fetchall():
            if not isinstance(header, bytes):
                yield f"commit number {seq}: its record is damaged"
                continue
            try:
                yield from self._commit(seq, self._digest(header).hex())
            except StateError as error:
                yield f"commit number {seq}: {error}"

    def _commit(self, seq: int, commit: str) -> Iterator[str]:
        place = self._rows.find(commit)
        if place is None or place.seq != seq:
            yield f"commit number {seq}: its record is damaged"
            return
        yield from self._ancestors(place)
        try:
            self._rows.events(place)
        except StateError as error:
            yield f"events of commit {commit[:12]}: {error}"
        for key, digest in self._rows.body(place).items():
            try:
                payload = self._rows.given(place, key)
            except StateError as error:
                yield f"commit {commit[:12]}: {error}"
                continue
            if (b"" if payload is None else self._digest(payload)) != digest:
                yield f"commit {commit[:12]}: {key.decode(errors='replace')!r} is not what was committed"
            for address in addresses_in(payload or b""):
                if self._db.execute("SELECT 1 FROM chunks WHERE address = ?", (address,)).fetchone() is None:
                    yield f"commit {commit[:12]}: a chunk of {key.decode(errors='replace')!r} is gone"

    def _ancestors(self, place: CommitRow) -> Iterator[str]:
        header: Header = place.header
        for parent in header.parents:
            if self._rows.find(parent) is None:
                yield f"commit {place.hash[:12]}: its parent {parent[:12]} is gone"
        lineage = self._rows.lineage(place.lineage)
        if lineage.tip < place.seq:
            yield f"commit {place.hash[:12]}: lies behind the end of its line"
        list(self._rows.line(place))

    def _strays(self) -> Iterator[str]:
        """Find rows that no commit has written: each is listed by the commit of its number."""
        query = "SELECT lineage, key, seq, next FROM rows ORDER BY lineage, key, seq"
        before: tuple[object, ...] = ()
        for lineage, key, seq, following in self._db.execute(query):
            if before and before[-1] != (seq if before[:2] == (lineage, key) else 0):
                yield f"a row of {before[1]!r} is gone"
            before = (lineage, key, following)
        if before and before[-1]:
            yield f"a row of {before[1]!r} is gone"
        bodies: dict[int, set[bytes]] = {}
        for _, key, seq in self._db.execute("SELECT lineage, key, seq FROM rows ORDER BY seq"):
            if seq not in bodies:
                bodies.clear()  # in the order of seq, one is enough
                bodies[seq] = self._listed(seq)
            if key not in bodies[seq]:
                yield f"a row of {key!r} is of no commit"

    def _listed(self, seq: int) -> set[bytes]:
        row = self._db.execute("SELECT header FROM commits WHERE seq = ?", (seq,)).fetchone()
        header = None if row is None else row[0]
        place = self._rows.find(self._digest(header).hex()) if isinstance(header, bytes) else None
        return set(self._rows.body(place)) if place else set()


def _damaged_chunks(directory: Directory) -> Iterator[str]:
    """Read all chunks, each in a moment of its own, so that a collector beside it can move them."""
    journal = RowJournal(directory)
    with directory.database.reading() as db:
        addresses = [address for (address,) in db.execute("SELECT address FROM chunks")]
    for address in addresses:
        if not isinstance(address, bytes):
            yield "the address of a chunk is damaged"
            continue
        try:
            journal.chunk(address)
        except StateError as error:
            if not journal.missing([address]):  # else it was collected
                yield str(error)
