"""Collecting garbage in a directory, in slices between which writers get their turn.

What is reachable of a lineage is always its beginning: a branch, a tag or a fork needs a commit
and all before it. So one number a lineage says what is kept, and a slice that looks again at the
branches before it drops anything costs little.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agex.errors import StateCorrupt
from agex.state.commits.digests import addresses_in
from agex.state.commits.journal import Collected
from agex.state.commits.length_prefixed import are_numbers
from agex.state.disk.directory import Directory
from agex.state.disk.refs import Refs
from agex.state.disk.rows import Lineage, Rows, put_lineage
from agex.state.disk.schema import Meta

__all__ = ["collect_rows"]

_SLICE = 50  # rows or chunks that one transaction drops: some milliseconds, as long as a commit
_MOVED = 1024 * 1024  # bytes of chunks that one transaction moves to a new pack
_DEAD = 4  # a pack is written anew when one part in so many is dead


@dataclass
class _Reach:
    """How far each lineage is reachable, kept up to date while writers go on."""

    directory: Directory
    seen: int = 0
    """The last commit that was looked at for its parents."""
    merges: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Lineage and seq of each merge, and of each of its further parents."""

    def limits(self, db: sqlite3.Connection) -> dict[int, int]:
        """Return the last seq that is reachable in each lineage; the others are not reachable at all."""
        rows = Rows(db, self.directory.digest)
        self._find_merges(db, rows)
        refs = Refs(db, self.directory.digest, self.directory.meta(db))
        heads = [rows.place(commit) for commit in {*refs.all("branch").values(), *refs.all("tag").values()}]
        open_ends = [(place.lineage, place.seq) for place in heads]
        limits: dict[int, int] = {}
        while open_ends:
            number, seq = open_ends.pop()
            before = limits.get(number, 0)
            if seq <= before:
                continue
            limits[number] = seq
            lineage = rows.lineage(number)
            if lineage.parent:
                open_ends.append((lineage.parent, lineage.fork))
            open_ends += [
                (to, at) for by, when, to, at in self.merges if by == number and before < when <= seq
            ]
        return limits

    def _find_merges(self, db: sqlite3.Connection, rows: Rows) -> None:
        query = "SELECT seq FROM commits WHERE seq > ? ORDER BY seq"
        for (seq,) in db.execute(query, (self.seen,)).fetchall():
            place = rows.place_at(seq)
            for parent in place.header.parents[1:]:
                other = rows.find(parent)
                if other is not None:  # it may be collected already where the merge is garbage too
                    self.merges.append((place.lineage, seq, other.lineage, other.seq))
            self.seen = seq


def collect_rows(directory: Directory) -> Collected:
    """Drop what no branch and no tag reaches.

    Raises:
        StateCorrupt: what is reachable is damaged; nothing more is dropped then.
    """
    own = directory.again()
    try:
        collector = _Collector(own)
        collector.drop_commits()
        collector.drop_chunks()
        collector.renew_packs()
        return Collected(commits=collector.commits, chunks=collector.chunks, bytes=collector.bytes)
    finally:
        own.close()


class _Collector:
    """One collection. Each slice is a transaction that sees what writers did before it."""

    def __init__(self, directory: Directory) -> None:
        self.commits = self.chunks = self.bytes = 0
        self._directory = directory
        self._digest = directory.digest

    def drop_commits(self) -> None:
        """Drop commits from the ends of their lineages on."""
        reach = _Reach(self._directory)
        with self._directory.database.reading() as db:
            reach.limits(db)  # what takes long, before a writer has to wait for it
        self._repeat(lambda db, _: self._drop_end(db, reach.limits(db)))

    def _drop_end(self, db: sqlite3.Connection, limits: dict[int, int]) -> bool:
        """Drop the end of one lineage; return whether there was any to drop."""
        rows = Rows(db, self._digest)
        for (number,) in db.execute("SELECT id FROM lineages ORDER BY id DESC").fetchall():
            lineage = rows.lineage(number)
            if lineage.tip > limits.get(number, 0):
                self._drop_tips(db, rows, lineage, limits.get(number, 0))
                return True
            if number not in limits:
                self._drop_lineage(db, number)
                return True
        return False

    def _drop_tips(self, db: sqlite3.Connection, rows: Rows, lineage: Lineage, limit: int) -> None:
        dropped, tip = 0, lineage.tip
        while tip > limit and dropped < _SLICE:
            place = rows.place_at(tip)
            for key in rows.body(place):
                self.bytes += len(rows.given(place, key) or b"")
                where = (lineage.id, key, tip)
                db.execute("DELETE FROM rows WHERE lineage = ? AND key = ? AND seq = ?", where)
                dropped += 1
                before = rows.last(lineage.id, key, following=tip)
                if before is not None:
                    where = (lineage.id, key, before)
                    db.execute("UPDATE rows SET next = 0 WHERE lineage = ? AND key = ? AND seq = ?", where)
            db.execute("DELETE FROM commits WHERE seq = ?", (tip,))
            self.commits += 1
            dropped += 1
            parents = place.header.parents
            parent = rows.find(parents[0]) if parents else None
            tip = parent.seq if parent is not None and parent.lineage == lineage.id else 0
        put_lineage(db, self._digest, lineage._replace(tip=tip))

    def _drop_lineage(self, db: sqlite3.Connection, number: int) -> None:
        """Drop a lineage without commits, and first the rows that it copied from further up."""
        some = "SELECT key, seq FROM rows WHERE lineage = ? LIMIT ?"
        found = db.execute(some, (number, _SLICE)).fetchall()
        for key, seq in found:
            db.execute("DELETE FROM rows WHERE lineage = ? AND key = ? AND seq = ?", (number, key, seq))
        if not found:
            db.execute("DELETE FROM lineages WHERE id = ?", (number,))

    def drop_chunks(self) -> None:
        """Drop the chunks that no row names."""
        used: set[bytes] = set()
        with self._directory.database.reading() as db:
            seen = self._directory.meta(db).generation
            for (payload,) in db.execute("SELECT payload FROM rows WHERE gone = 0"):
                if not isinstance(payload, bytes):
                    raise StateCorrupt("What the store holds under a key is damaged.")
                used |= addresses_in(payload)
            chunks = db.execute("SELECT address, length FROM chunks").fetchall()
            if not are_numbers(*(length for _, length in chunks)):
                raise StateCorrupt("Where a chunk of the store lies is damaged.")
        unused = [chunk for chunk in chunks if chunk[0] not in used]

        def drop_some(db: sqlite3.Connection, meta: Meta) -> bool:
            nonlocal seen
            used.update(self._named_since(db, seen))
            seen = meta.generation
            for address, length in unused[-_SLICE:]:
                if address not in used:
                    db.execute("DELETE FROM chunks WHERE address = ?", (address,))
                    self.chunks += 1
                    self.bytes += length
            del unused[-_SLICE:]
            return bool(unused)

        if unused:
            self._repeat(drop_some)

    def _named_since(self, db: sqlite3.Connection, generation: int) -> Iterator[bytes]:
        """Yield the chunks that commits after a change have named."""
        rows = Rows(db, self._digest)
        query = "SELECT seq FROM commits WHERE seq > ?"
        for (seq,) in db.execute(query, (generation,)).fetchall():
            place = rows.place_at(seq)
            for key in rows.body(place):
                yield from addresses_in(rows.given(place, key) or b"")

    def renew_packs(self) -> None:
        """Write a pack that is dead in good part anew, and delete packs that nothing is in."""
        packs = self._directory.packs
        with self._directory.database.reading() as db:
            meta = self._directory.meta(db)
            query = "SELECT coalesce(sum(length), 0) FROM chunks WHERE pack = ?"
            (alive,) = db.execute(query, (meta.pack,)).fetchone()
        if (meta.pack_end - alive) * _DEAD >= meta.pack_end > 0:
            with self._directory.changing() as (_, now):
                # Another collector may have been faster.
                if now.pack == meta.pack:
                    now.pack, now.pack_end = meta.pack + 1, 0
        self._repeat(self._move_chunks)
        with self._directory.database.reading() as db:
            current = self._directory.meta(db).pack
            needed = {number for (number,) in db.execute("SELECT DISTINCT pack FROM chunks")}
        for number in packs.numbers():
            if number < current and number not in needed:
                packs.remove(number)

    def _move_chunks(self, db: sqlite3.Connection, meta: Meta) -> bool:
        """Move some chunks from older packs to the one that grows; return whether there were any."""
        query = "SELECT address, pack, at, length FROM chunks WHERE pack < ? LIMIT ?"
        moved: list[bytes] = []
        at, size = meta.pack_end, 0
        for address, number, start, length in db.execute(query, (meta.pack, _SLICE)).fetchall():
            if size and size + length > _MOVED:
                break
            content = self._directory.packs.read(number, start, length)
            if self._digest.address(content) != address:
                raise StateCorrupt(f"The chunk {address.hex()} is damaged; its pack is kept as it is.")
            place = (meta.pack, at + size, address)
            db.execute("UPDATE chunks SET pack = ?, at = ? WHERE address = ?", place)
            moved.append(content)
            size += length
        if moved:
            durable = self._directory.durable
            meta.pack_end = self._directory.packs.append(meta.pack, at, moved, durable=durable)
        return bool(moved)

    def _repeat(self, change: Callable[[sqlite3.Connection, Meta], bool]) -> None:
        """Make changes, each a transaction, while there is something to do."""
        again = True
        while again:
            begin = time.monotonic()
            with self._directory.changing() as (db, meta):
                again = change(db, meta)
            # As long again for others: SQLite lets those who wait try now and then, not in turn.
            time.sleep(time.monotonic() - begin)
