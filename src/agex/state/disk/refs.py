"""Branches and tags in rows, none of which is lost unseen."""

from __future__ import annotations

import sqlite3
from typing import Literal

from agex.errors import StateCorrupt
from agex.state.commits.digests import Digest
from agex.state.commits.length_prefixed import pack
from agex.state.disk.schema import Meta, combine

__all__ = ["Kind", "Refs"]

Kind = Literal["branch", "tag"]


class Refs:
    """The branches and tags as one transaction sees them."""

    def __init__(self, db: sqlite3.Connection, digest: Digest, meta: Meta) -> None:
        self._db = db
        self._digest = digest
        self._meta = meta

    def all(self, kind: Kind) -> dict[str, str]:
        """Return the commit of each name, sorted by name.

        Raises:
            StateCorrupt: one is damaged or gone.
        """
        rows = self._db.execute('SELECT kind, name, target, "check" FROM refs').fetchall()
        digests = [self._checked(*row) for row in rows]
        if combine(bytes(32), *digests) != self._meta.refs:
            raise StateCorrupt("A branch or a tag of the store is gone without a word.")
        return {name.decode(): target.hex() for row_kind, name, target, _ in rows if row_kind == kind}

    def get(self, kind: Kind, name: str) -> str | None:
        """Return the commit of a name; None where there is none.

        Raises:
            StateCorrupt: it is damaged or gone.
        """
        row = self._db.execute(
            'SELECT kind, name, target, "check" FROM refs WHERE kind = ? AND name = ?', (kind, name.encode())
        ).fetchone()
        if row is None:
            return self.all(kind).get(name)  # believed only after all are seen to be there
        self._checked(*row)
        target: bytes = row[2]
        return target.hex()

    def set(self, kind: Kind, name: str, old: str | None, new: str | None) -> None:
        """Point a name from its old commit to a new one; None is for no name."""
        held = name.encode()
        if old is not None:
            self._meta.refs = combine(self._meta.refs, self._sum(kind, held, bytes.fromhex(old)))
        if new is None:
            self._db.execute("DELETE FROM refs WHERE kind = ? AND name = ?", (kind, held))
            return
        target = bytes.fromhex(new)
        total = self._sum(kind, held, target)
        self._meta.refs = combine(self._meta.refs, total)
        self._db.execute("REPLACE INTO refs VALUES (?, ?, ?, ?)", (kind, held, target, total[:8]))

    def _checked(self, kind: object, name: object, target: object, check: object) -> bytes:
        if isinstance(kind, str) and isinstance(name, bytes) and isinstance(target, bytes):
            total = self._sum(kind, name, target)
            if total[:8] == check:
                return total
        raise StateCorrupt("A branch or a tag of the store is damaged.")

    def _sum(self, kind: str, name: bytes, target: bytes) -> bytes:
        return self._digest(pack(kind.encode(), name, target))
