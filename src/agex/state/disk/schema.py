"""The tables of a directory's database."""

from __future__ import annotations

import functools
import operator
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from agex.errors import StateCorrupt
from agex.state.commits.length_prefixed import are_numbers

__all__ = ["Meta", "combine", "create_tables", "require_tables"]

_SCHEMA = """
CREATE TABLE store (
    one INTEGER PRIMARY KEY, format INTEGER, digest BLOB,
    generation INTEGER, pack INTEGER, pack_end INTEGER, refs BLOB, "check" BLOB);
CREATE TABLE refs (kind TEXT, name BLOB, target BLOB, "check" BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE lineages (
    id INTEGER PRIMARY KEY, parent INTEGER, fork INTEGER, depth INTEGER, tip INTEGER, "check" BLOB);
CREATE TABLE commits (
    seq INTEGER PRIMARY KEY, id BLOB, lineage INTEGER, known INTEGER, pack INTEGER, pack_end INTEGER,
    "check" BLOB, header BLOB, body BLOB, events BLOB);
CREATE INDEX commits_by_id ON commits (id);
CREATE TABLE rows (
    lineage INTEGER, key BLOB, seq INTEGER, gone INTEGER, next INTEGER, payload BLOB, "check" BLOB,
    PRIMARY KEY (lineage, key, seq)) WITHOUT ROWID;
CREATE INDEX twin ON rows (lineage, key, seq, gone, next);
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY, address BLOB UNIQUE, pack INTEGER, at INTEGER, length INTEGER, content BLOB);
CREATE TABLE kv (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID;
"""


def create_tables(db: sqlite3.Connection) -> None:
    """Make the tables of a new store."""
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            db.execute(statement)


def require_tables(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a database whose tables are not exactly those of a store.

    A view, a trigger, a generated column or an index over an expression computes where we read and write: as
    long as its author likes.

    Raises:
        StateCorrupt: with the names of what is not as it should be.
    """
    expected = _expected_tables()
    found = frozenset(_tables(db, len(expected) + 20))
    if found != expected:
        names = sorted({str(name) for _, name, _, _ in found ^ expected})
        raise StateCorrupt(
            f"{path} has not exactly the tables of a store: see {', '.join(map(ascii, names[:5]))}."
        )


@functools.cache
def _expected_tables() -> frozenset[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as db:
        create_tables(db)
        return frozenset(_tables(db, 100))


def _tables(db: sqlite3.Connection, most: int) -> list[tuple[object, ...]]:
    return db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?", (most,)).fetchall()


@dataclass
class Meta:
    """The store's own row, which every change rewrites."""

    generation: int
    """How many changes there were. A commit's place in the store is its generation."""
    pack: int
    """The pack that grows."""
    pack_end: int
    refs: bytes
    """The exclusive or of the digests of all branches and tags: none is lost unseen."""

    @property
    def is_sound(self) -> bool:
        """Whether its fields are what they should be: a stranger's store may hold anything, well checked."""
        numbers = (self.generation, self.pack, self.pack_end)
        return (
            are_numbers(*numbers) and min(numbers) >= 0 and type(self.refs) is bytes and len(self.refs) == 32
        )


def combine(*digests: bytes) -> bytes:
    """Return the exclusive or of digests; one that is in it twice is in it no more."""
    value = functools.reduce(operator.xor, (int.from_bytes(digest, "big") for digest in digests))
    return value.to_bytes(32, "big")
