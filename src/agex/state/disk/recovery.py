"""Going back to what the pack covers, after a loss of power in a store that does not wait for the disk.

The disk may have a commit's rows and not its chunks then. Such a commit was never promised to
last: the store goes back to the one before it. A pack that is too short for commits that were
waited for is damage, and stays for the reader to be told.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from agex.state.disk.refs import Kind, Refs
from agex.state.disk.rows import CommitRow, Rows, put_lineage

if TYPE_CHECKING:
    from agex.state.disk.directory import Directory
    from agex.state.disk.schema import Meta

__all__ = ["roll_back"]


def roll_back(directory: Directory) -> None:
    """Drop the commits whose chunks the pack does not have, and all after them."""
    with directory.changing(mending=True) as (db, meta):
        size = directory.packs.size(meta.pack)
        query = "SELECT min(seq) FROM commits WHERE pack = ? AND pack_end > ?"
        (first,) = db.execute(query, (meta.pack, size)).fetchone()
        if first is None or size >= meta.pack_end:
            return
        (waited_for,) = db.execute(
            "SELECT count(*) FROM commits WHERE seq >= ? AND pack_end IS NULL", (first,)
        ).fetchone()
        if not waited_for:
            _drop_from(db, directory, meta, first)
            meta.pack_end = size
            db.execute("DELETE FROM chunks WHERE pack = ? AND at + length > ?", (meta.pack, size))


def _drop_from(db: sqlite3.Connection, directory: Directory, meta: Meta, first: int) -> None:
    """Drop all commits from one on; each branch goes back to its last one before."""
    rows = Rows(db, directory.digest)
    refs = Refs(db, directory.digest, meta)
    kinds: tuple[Kind, Kind] = ("branch", "tag")
    for kind in kinds:
        for name, commit in refs.all(kind).items():
            place: CommitRow | None = rows.place(commit)
            while place is not None and place.seq >= first:
                parents = place.header.parents
                place = rows.place(parents[0]) if parents else None
            refs.set(kind, name, commit, None if place is None else place.hash)
    db.execute("DELETE FROM lineages WHERE id >= ?", (first,))  # its id is its first commit's seq
    for (number,) in db.execute("SELECT id FROM lineages WHERE tip >= ?", (first,)).fetchall():
        query = "SELECT max(seq) FROM commits WHERE lineage = ? AND seq < ?"
        (tip,) = db.execute(query, (number, first)).fetchone()
        put_lineage(db, directory.digest, rows.lineage(number)._replace(tip=tip))
    db.execute("DELETE FROM rows WHERE seq >= ? OR lineage >= ?", (first, first))
    db.execute("UPDATE rows SET next = 0 WHERE next >= ?", (first,))
    db.execute("DELETE FROM commits WHERE seq >= ?", (first,))
