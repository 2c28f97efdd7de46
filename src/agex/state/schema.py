"""The tables of a directory's database."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass

__all__ = ["SCHEMA", "Meta", "combine"]

SCHEMA = """
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


@dataclass
class Meta:
    """What the store says of itself; one row, changed by every change."""

    generation: int
    """How many changes there were. A commit's place in the store is its generation."""
    pack: int
    """The pack that grows."""
    pack_end: int
    refs: bytes
    """The exclusive or of the digests of all branches and tags: none is lost unseen."""


def combine(*digests: bytes) -> bytes:
    """Return the exclusive or of digests; one that is in it twice is in it no more."""
    value = functools.reduce(operator.xor, (int.from_bytes(digest, "big") for digest in digests))
    return value.to_bytes(32, "big")
