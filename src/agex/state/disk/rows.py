"""Reading rows: where a commit is, what a key holds there, and whether that can be believed.

A row is (lineage, key, seq): what a commit gave a key. Commits that follow one another form a
lineage; one on an older commit begins a lineage of its own, which goes on where that commit
is. So what a key holds at a commit is its last row at or before it, here or further up.

A row that is not found would make an older value the answer, or none, so that two things see
to it. Each look-up goes through the table and through its twin, an index with the same keys in
pages of its own, and both must agree: a damaged page hides nothing. And what is not there is
missed: a row names the seq of the row that follows it, a commit the number of keys that its
lineage has rows of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from agex.errors import StateCorrupt, StateError
from agex.state.commits.digests import Digest
from agex.state.commits.headers import Header
from agex.state.commits.length_prefixed import are_numbers, unpack

__all__ = ["CommitRow", "Lineage", "Row", "Rows", "put_lineage"]

# Queries name the tree they go through: with NOT INDEXED alone, SQLite takes the twin where that is enough.
_TREES = ("INDEXED BY sqlite_autoindex_rows_1", "INDEXED BY twin")
# The first takes as long as there are keys, the second as there are rows, at a tenth of the time for each.
_FROM_KEY_TO_KEY = """
WITH RECURSIVE step (key) AS (
    SELECT min(key) FROM rows {0} WHERE lineage = :lineage AND key >= :low AND key < :high
    UNION ALL
    SELECT (SELECT min(key) FROM rows {0} WHERE lineage = :lineage AND key > step.key AND key < :high)
    FROM step WHERE step.key IS NOT NULL LIMIT 500)
SELECT last.key, last.seq, last.gone, last.next FROM step LEFT JOIN rows AS last {0}
ON last.lineage = :lineage AND last.key = step.key AND last.seq = (
    SELECT max(seq) FROM rows {0} WHERE lineage = :lineage AND key = step.key AND seq <= :limit)
"""
_ROW_BY_ROW = """
SELECT key, max(seq), gone, next FROM rows {0}
WHERE lineage = :lineage AND key >= :low AND key < :high AND seq <= :limit GROUP BY key
"""
_MANY = 500  # the limit above


class CommitRow(NamedTuple):
    """The row of a commit: its lineage and its number there."""

    hash: str
    lineage: int
    seq: int
    known: int
    """How many keys its lineage has rows of, up to it."""
    packed: bytes
    """Its header, checked against its hash."""

    @property
    def header(self) -> Header:
        """The header, unpacked."""
        return Header.unpack(self.packed)


class Lineage(NamedTuple):
    """A line of commits."""

    id: int
    parent: int
    """The lineage it left; 0 for none."""
    fork: int
    """The seq of the commit that it stands on."""
    depth: int
    """How many lineages its look-ups go on to; 0 where it has all rows itself."""
    tip: int
    """The seq of its last commit."""


class Row(NamedTuple):
    """The payload that a commit gave a key."""

    seq: int
    payload: bytes | None


class RowAddress(NamedTuple):
    """The lineage and number of the row that holds a key."""

    lineage: int
    seq: int


class Rows:
    """The rows as one transaction sees them."""

    def __init__(self, db: sqlite3.Connection, digest: Digest) -> None:
        self._db = db
        self._digest = digest

    def find(self, commit: str) -> CommitRow | None:
        """Return where a commit is; None if it is not there."""
        try:
            wanted = bytes.fromhex(commit)
        except ValueError:
            return None
        found = self._db.execute(
            'SELECT seq, lineage, known, pack, pack_end, "check", header FROM commits WHERE id = ?',
            (wanted[:8],),
        ).fetchall()
        for seq, lineage, known, pack, end, check, header in found:
            if not isinstance(header, bytes) or self._digest(header) != wanted:
                continue
            if self._digest.check(seq, lineage, known, pack, end, wanted) != check or not are_numbers(
                seq, lineage, known
            ):
                raise StateCorrupt(f"Commit {commit[:12]} is damaged: its place in the store is not its own.")
            return CommitRow(commit, lineage, seq, known, header)
        if found and len(wanted) == 32:
            raise StateCorrupt(f"Commit {commit[:12]} is damaged: its record does not match its hash.")
        return None

    def place(self, commit: str) -> CommitRow:
        """Return where a commit is.

        Raises:
            StateError: it is not there.
        """
        place = self.find(commit)
        if place is None:
            raise StateError(f"There is no commit {commit[:12]!r} in this store.")
        return place

    def place_at(self, seq: int) -> CommitRow:
        """Return the commit of a number.

        Raises:
            StateCorrupt: it is gone or damaged.
        """
        row = self._db.execute("SELECT header FROM commits WHERE seq = ?", (seq,)).fetchone()
        place = self.find(self._digest(row[0]).hex()) if row and isinstance(row[0], bytes) else None
        if place is None or place.seq != seq:
            raise StateCorrupt(f"Commit number {seq} is gone or damaged.")
        return place

    def lineage(self, number: int) -> Lineage:
        """Return a lineage.

        Raises:
            StateCorrupt: it is gone or damaged.
        """
        row = self._db.execute(
            'SELECT id, parent, fork, depth, tip, "check" FROM lineages WHERE id = ?', (number,)
        ).fetchone()
        if row is None or self._digest.check(*row[:-1]) != row[-1] or not are_numbers(*row[:-1]):
            raise StateCorrupt("A line of commits is damaged.")
        return Lineage(*row[:-1])

    def line(self, place: CommitRow) -> Iterator[tuple[int, int]]:
        """Yield the lineages that a commit's look-ups go through, and the last seq that counts in each."""
        number, limit, before = place.lineage, place.seq, None
        while True:
            yield number, limit
            lineage = self.lineage(number)
            if before is not None and lineage.depth != before - 1:  # else it might go round
                raise StateCorrupt("A line of commits is damaged.")
            if lineage.depth == 0:
                return
            number, limit, before = lineage.parent, lineage.fork, lineage.depth

    def get(self, place: CommitRow, key: bytes) -> bytes | None:
        """Return what a key holds at a commit; None where it holds nothing."""
        for lineage, limit in self.line(place):
            row = self._db.execute(
                'SELECT seq, gone, next, payload, "check" FROM rows INDEXED BY sqlite_autoindex_rows_1 '
                "WHERE lineage = ? AND key = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
                (lineage, key, limit),
            ).fetchone()
            twin = self._db.execute(
                "SELECT seq, gone, next FROM rows INDEXED BY twin "
                "WHERE lineage = ? AND key = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
                (lineage, key, limit),
            ).fetchone()
            if (row and row[:3]) != twin:
                raise _damaged(key)
            if row is not None:
                seq, gone, following, payload, check = row
                if not are_numbers(seq, gone, following):
                    raise _damaged(key)
                if 0 < following <= limit:  # the one that should have been found
                    raise _damaged(key)
                return self._believed(key, seq, gone, payload, check)
        return None

    def given(self, place: CommitRow, key: bytes) -> bytes | None:
        """Return the payload that this very commit gave a key; None where it deleted the key.

        Raises:
            StateCorrupt: its row is gone.
        """
        return self._exactly(key, RowAddress(place.lineage, place.seq))

    def _exactly(self, key: bytes, held: RowAddress) -> bytes | None:
        row = self._db.execute(
            'SELECT seq, gone, payload, "check" FROM rows INDEXED BY sqlite_autoindex_rows_1 '
            "WHERE lineage = ? AND key = ? AND seq = ?",
            (held.lineage, key, held.seq),
        ).fetchone()
        if row is None:
            raise _damaged(key)
        return self._believed(key, *row)

    def keys(self, place: CommitRow, prefix: bytes) -> dict[bytes, RowAddress]:
        """Return each key with a prefix at a commit, sorted, and the row that holds it."""
        found: dict[bytes, RowAddress | None] = {}
        for lineage, limit in self.line(place):
            known = place.known if limit == place.seq else self.place_at(limit).known
            whole = not prefix or known < _MANY  # of so few all are looked at, to see that none is missing
            low = b"" if whole else prefix
            bounds = {"lineage": lineage, "low": low, "high": low + b"\xff", "limit": limit}
            rows, twins = (self._last(tree, bounds) for tree in _TREES)
            sound = all(type(key) is bytes and are_numbers(*numbers) for key, *numbers in rows)
            if rows != twins or not sound or (whole and len(rows) != known):
                raise StateCorrupt("The store's table of keys is damaged.")
            skipped = next((key for key, _, _, following in rows if 0 < following <= limit), None)
            if skipped is not None:
                raise _damaged(skipped)
            here = {
                key: None if gone else RowAddress(lineage, seq)
                for key, seq, gone, _ in rows
                if key.startswith(prefix)
            }
            found = {**here, **found} if found else here  # the nearer lineage decides
        return {key: held for key, held in sorted(found.items()) if held is not None}

    def last(self, lineage: int, key: bytes, *, following: int = 0) -> int | None:
        """Return the seq of the last row of a key in a lineage; None where it has none.

        Args:
            lineage: the lineage.
            key: the key.
            following: the seq of the row after it, where that was deleted just now.

        Raises:
            StateCorrupt: that row is damaged or gone: a commit on top would hide it.
        """
        query = "SELECT seq, next FROM rows {} WHERE lineage = ? AND key = ? ORDER BY seq DESC LIMIT 1"
        row, twin = (self._db.execute(query.format(tree), (lineage, key)).fetchone() for tree in _TREES)
        if row != twin:
            raise _damaged(key)
        if row is None:
            return None
        seq, noted = row
        if noted != following or not isinstance(seq, int):
            raise _damaged(key)
        return seq

    def _last(self, tree: str, bounds: dict[str, object]) -> list[tuple[bytes, int, int, int]]:
        """Return the last row of each key in a lineage."""
        steps = self._db.execute(_FROM_KEY_TO_KEY.format(tree), bounds).fetchall()
        if len(steps) < _MANY:
            return [step for step in steps if step[1] is not None]  # without keys that came later
        return self._db.execute(_ROW_BY_ROW.format(tree), bounds).fetchall()

    def all(self, place: CommitRow, prefix: bytes) -> dict[bytes, bytes]:
        """Return each key with a prefix at a commit, sorted, and what it holds."""
        found: dict[bytes, bytes] = {}
        for key, held in self.keys(place, prefix).items():
            payload = self._exactly(key, held)
            if payload is None:  # `keys` leaves out what is gone
                raise _damaged(key)
            found[key] = payload
        return found

    def body(self, place: CommitRow) -> dict[bytes, bytes]:
        """Return the keys that a commit changed, with digests of what it gave; empty for what it took."""
        row = self._db.execute("SELECT body FROM commits WHERE seq = ?", (place.seq,)).fetchone()
        if row is None or not isinstance(row[0], bytes) or self._digest(row[0]) != place.header.content:
            raise StateCorrupt(f"The list of changes of commit {place.hash[:12]} is damaged.")
        fields = unpack(row[0])
        return dict(zip(fields[::2], fields[1::2], strict=True))

    def events(self, place: CommitRow) -> list[bytes]:
        """Return the events of a commit."""
        row = self._db.execute("SELECT events FROM commits WHERE seq = ?", (place.seq,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            raise StateCorrupt(f"The events of commit {place.hash[:12]} are gone.")
        return place.header.unpack_events(row[0], self._digest)

    def _believed(self, key: bytes, seq: int, gone: int, payload: bytes | None, check: bytes) -> bytes | None:
        kind = type(None) if gone else bytes
        if self._digest.check(key, seq, gone, payload) != check or type(payload) is not kind:
            raise _damaged(key)
        return payload


def put_lineage(db: sqlite3.Connection, digest: Digest, lineage: Lineage) -> None:
    """Write a lineage, whether it is new or not."""
    db.execute("REPLACE INTO lineages VALUES (?, ?, ?, ?, ?, ?)", (*lineage, digest.check(*lineage)))


def _damaged(key: bytes) -> StateCorrupt:
    return StateCorrupt(f"What the store holds under {key.decode(errors='replace')!r} is damaged.")
