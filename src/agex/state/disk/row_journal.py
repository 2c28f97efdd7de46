"""Commits as rows of a directory's SQLite file, large chunks in its pack."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from agex.errors import StateConflict, StateCorrupt, StateError
from agex.state.commits.draft_checks import Unsure, choose, named_chunks, no_tag, size
from agex.state.commits.headers import Header
from agex.state.commits.journal import Collected, CommitInfo, Draft
from agex.state.commits.length_prefixed import pack
from agex.state.commits.lru import Recent
from agex.state.disk.directory import Directory
from agex.state.disk.refs import Refs
from agex.state.disk.rows import CommitRow, Lineage, Row, Rows, put_lineage
from agex.state.disk.schema import Meta

__all__ = ["RowJournal"]

_LARGE = 32 * 1024  # bytes; from here on a file of its own is faster than SQLite's pages
_DEPTH = 32  # lineages that a look-up goes through at most: one of 3 µs each
_NEAR = 16  # commits between two that are compared by their lists of changes, not by all keys; or more:
_KEYS_A_LIST = 4  # keys that are compared in the time in which one list of changes is read
_PAGE = 256  # commits of a history read at once


class RowJournal:
    """The journal of a `Disk`."""

    def __init__(self, directory: Directory, recent: Recent | None = None) -> None:
        self._directory = directory
        self._recent = recent or Recent(0)
        self._digest = directory.digest
        self._unsure = Unsure()
        self._promised: set[bytes] = set()  # chunks that this journal said are there: commits may rely on it

    # --- writing --------------------------------------------------------------------------------

    def commit(self, draft: Draft, *, branch: str, expect: str | None) -> str:
        """Write a commit and move a branch to it; see `Journal`."""
        changes = {key.encode(): payload for key, payload in draft.changes.items()}
        promised = named_chunks(draft) & self._promised
        body = pack(*self._listed(changes))
        header, events = Header.of(draft, content=self._digest(body), digest=self._digest)
        packed = header.pack()
        commit = self._digest(packed).hex()
        with self._moving(branch, expect, commit) as (db, meta, head):
            rows, refs = Rows(db, self._digest), Refs(db, self._digest, meta)
            if self._directory.size_limit is not None:
                self._directory.require_space(db, size(draft))
            if rows.find(commit) is None:  # else another branch has made the very same commit
                self._add_chunks(db, meta, draft.chunks)
                self._require_chunks(db, promised)
                lineage, known = self._lineage(db, rows, draft.parents, meta.generation)
                known += self._add_rows(db, rows, lineage, meta.generation, changes)
                self._add_commit(db, meta, lineage, known, (packed, body, events))
            refs.set("branch", branch, head, commit)
        return commit

    def move(self, branch: str, to: str | None, *, expect: str | None) -> None:
        """Point a branch at a commit, or delete it; see `Journal`."""
        with self._moving(branch, expect, to) as (db, meta, head):
            if to is not None:
                Rows(db, self._digest).place(to)
            Refs(db, self._digest, meta).set("branch", branch, head, to)

    @contextmanager
    def _moving(
        self, branch: str, expect: str | None, to: str | None
    ) -> Iterator[tuple[sqlite3.Connection, Meta, str | None]]:
        """Yield the connection for a change that moves a branch, and where the branch is.

        Raises:
            HeadMoved: that is not where its writer left it.
        """
        try:
            with self._directory.changing() as (db, meta):
                head = Refs(db, self._digest, meta).get("branch", branch)
                self._unsure.require_head(branch, head, expect)
                yield db, meta, head
        except StateError:  # some of them after it was written
            self._unsure.note(branch, expect, to)
            raise
        self._unsure.settle(branch)

    def tag(self, name: str, commit: str) -> None:
        """Name a commit for good; see `Journal`."""
        with self._directory.changing() as (db, meta):
            refs = Refs(db, self._digest, meta)
            Rows(db, self._digest).place(commit)
            old = refs.get("tag", name)
            if old is not None and old != commit:
                raise StateError(
                    f"The tag {name!r} is given to commit {old[:12]} already; choose another name."
                )
            refs.set("tag", name, old, commit)

    def untag(self, name: str) -> None:
        """Take a tag away; see `Journal`."""
        with self._directory.changing() as (db, meta):
            refs = Refs(db, self._digest, meta)
            old = refs.get("tag", name)
            if old is None:
                raise no_tag(name)
            refs.set("tag", name, old, None)

    def _add_chunks(
        self, db: sqlite3.Connection, meta: Meta, chunks: Mapping[bytes, bytes | memoryview]
    ) -> None:
        wanted = self._missing(db, chunks)
        new = {
            address: memoryview(content).cast("B") for address, content in chunks.items() if address in wanted
        }
        large = {address: content for address, content in new.items() if len(content) >= _LARGE}
        at = meta.pack_end
        for address, content in new.items():
            if address not in large:
                self._add_chunk(db, address, len(content), content=content)
            else:
                self._add_chunk(db, address, len(content), pack=meta.pack, at=at)
                at += len(content)
        if large:
            meta.pack_end = self._directory.packs.append(
                meta.pack, meta.pack_end, large.values(), durable=self._directory.durable
            )

    def _add_chunk(
        self,
        db: sqlite3.Connection,
        address: bytes,
        length: int,
        *,
        pack: int | None = None,
        at: int | None = None,
        content: memoryview | None = None,
    ) -> None:
        db.execute(
            "INSERT INTO chunks (address, pack, at, length, content) VALUES (?, ?, ?, ?, ?)",
            (address, pack, at, length, content),
        )

    def _require_chunks(self, db: sqlite3.Connection, promised: set[bytes]) -> None:
        gone = self._missing(db, promised)
        if gone:
            self._promised -= gone
            raise StateConflict(
                "Garbage was collected while this commit was made, and took a chunk that it needs; "
                "nothing was written. Commit again."
            )

    def _lineage(
        self, db: sqlite3.Connection, rows: Rows, parents: tuple[str, ...], seq: int
    ) -> tuple[int, int]:
        """Return the lineage that a new commit belongs to, as its tip, and the keys that this has so far."""
        places = [rows.place(parent) for parent in parents]
        if not places:
            return self._new_lineage(db, parent=0, fork=0, depth=0, tip=seq), 0
        first = places[0]
        lineage = rows.lineage(first.lineage)
        if lineage.tip == first.seq:
            put_lineage(db, self._digest, lineage._replace(tip=seq))
            return lineage.id, first.known
        if lineage.depth < _DEPTH:
            depth = lineage.depth + 1
            return self._new_lineage(db, parent=lineage.id, fork=first.seq, depth=depth, tip=seq), 0
        # So many forks upon forks that look-ups would get slow: this one has rows for all keys itself.
        new = self._new_lineage(db, parent=lineage.id, fork=first.seq, depth=0, tip=seq)
        held = rows.keys(first, b"")
        for key, payload in rows.all(first, b"").items():
            self._add_row(db, new, key, Row(held[key].seq, payload))
        return new, len(held)

    def _new_lineage(self, db: sqlite3.Connection, *, parent: int, fork: int, depth: int, tip: int) -> int:
        # Its first commit's seq is a number that no other lineage has, even one that was collected.
        put_lineage(db, self._digest, Lineage(tip, parent, fork, depth, tip))
        return tip

    def _add_rows(
        self,
        db: sqlite3.Connection,
        rows: Rows,
        lineage: int,
        seq: int,
        changes: Mapping[bytes, bytes | None],
    ) -> int:
        """Add the rows of a commit; return how many of its keys are new to the lineage."""
        new = 0
        for key, payload in changes.items():
            before = rows.last(lineage, key)
            if before is None:
                new += 1
            else:
                where = (seq, lineage, key, before)
                db.execute("UPDATE rows SET next = ? WHERE lineage = ? AND key = ? AND seq = ?", where)
            self._add_row(db, lineage, key, Row(seq, payload))
        return new

    def _add_row(self, db: sqlite3.Connection, lineage: int, key: bytes, row: Row) -> None:
        gone = int(row.payload is None)
        check = self._digest.check(key, row.seq, gone, row.payload)
        db.execute(
            "INSERT INTO rows VALUES (?, ?, ?, ?, 0, ?, ?)", (lineage, key, row.seq, gone, row.payload, check)
        )

    def _add_commit(
        self, db: sqlite3.Connection, meta: Meta, lineage: int, known: int, parts: tuple[bytes, bytes, bytes]
    ) -> None:
        identity = self._digest(parts[0])
        # Where the pack ends is of use only if the disk may not have it yet.
        pack_end = None if self._directory.durable else meta.pack_end
        check = self._digest.check(meta.generation, lineage, known, meta.pack, pack_end, identity)
        row = (meta.generation, identity[:8], lineage, known, meta.pack, pack_end, check, *parts)
        db.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _listed(self, changes: Mapping[bytes, bytes | None]) -> Iterator[bytes]:
        for key in sorted(changes):
            payload = changes[key]
            yield key
            yield b"" if payload is None else self._digest(payload)

    # --- chunks ---------------------------------------------------------------------------------

    def address(self, content: bytes | memoryview) -> bytes:
        """Return the address of a chunk; see `Journal`."""
        return self._digest.address(content)

    def missing(self, addresses: Collection[bytes]) -> set[bytes]:
        """Return those of the addresses that there is no chunk for; see `Journal`."""
        with self._directory.database.reading() as db:
            missing = self._missing(db, addresses)
        self._promised.update(address for address in addresses if address not in missing)
        return missing

    def chunk(self, address: bytes) -> bytes:
        """Return a chunk; see `Journal`."""
        content = self._recent.get(address)
        if content is None:
            content = self._content(address)
            if self._digest.address(content) != address:
                raise StateCorrupt(f"The chunk {address.hex()} is damaged.")
            self._recent.add(address, content)
        self._promised.add(address)
        return content

    def _content(self, address: bytes) -> bytes:
        seen = None
        while True:
            with self._directory.database.reading() as db:
                query = "SELECT pack, at, length, content FROM chunks WHERE address = ?"
                row = db.execute(query, (address,)).fetchone()
            if row is None:
                raise StateCorrupt(f"The chunk {address.hex()} is not in the store.")
            number, at, length, content = row
            if isinstance(content, bytes):
                return content
            try:
                return self._directory.packs.read(number, at, length)
            except StateCorrupt:
                if row == seen:
                    raise
                seen = row  # a collector may have moved it to a new pack just now

    def _missing(self, db: sqlite3.Connection, addresses: Collection[bytes]) -> set[bytes]:
        query = "SELECT 1 FROM chunks WHERE address = ?"
        return {address for address in addresses if db.execute(query, (address,)).fetchone() is None}

    # --- reading --------------------------------------------------------------------------------

    def read(self, commit: str, key: str) -> bytes | None:
        """Return what a key holds at a commit; see `Journal`."""
        with self._rows() as rows:
            return rows.get(rows.place(commit), key.encode())

    def read_all(self, commit: str, prefix: str = "") -> dict[str, bytes]:
        """Return every key and what it holds; see `Journal`."""
        with self._rows() as rows:
            found = rows.all(rows.place(commit), prefix.encode())
        return {key.decode(): payload for key, payload in found.items()}

    def keys(self, commit: str, prefix: str = "") -> list[str]:
        """Return the keys at a commit; see `Journal`."""
        with self._rows() as rows:
            return [key.decode() for key in rows.keys(rows.place(commit), prefix.encode())]

    def record(self, commit: str) -> CommitInfo:
        """Return a commit; see `Journal`."""
        with self._rows() as rows:
            return rows.place(commit).header.record(commit)

    def history(self, commit: str) -> Iterator[CommitInfo]:
        """Yield a commit and those before it; see `Journal`."""
        following: str | None = commit
        while following is not None:
            page: list[CommitInfo] = []
            with self._rows() as rows:
                while following is not None and len(page) < _PAGE:
                    header = rows.place(following).header
                    page.append(header.record(following))
                    following = header.parents[0] if header.parents else None
            yield from page

    def changes(self, commit: str) -> dict[str, bytes | None]:
        """Return what a commit changed; see `Journal`."""
        with self._rows() as rows:
            place = rows.place(commit)
            parents = place.header.parents
            parent = rows.place(parents[0]) if parents else None
            changed = {}
            for key in rows.body(place):
                payload = rows.given(place, key)
                if payload != (parent and rows.get(parent, key)):
                    changed[key.decode()] = payload
            return changed

    def diff(self, old: str | None, new: str) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Return the keys that differ between two commits; see `Journal`."""
        with self._rows() as rows:
            before = None if old is None else rows.place(old)
            after = rows.place(new)
            pairs = (
                (key, before and rows.get(before, key), rows.get(after, key))
                for key in sorted(self._touched(rows, before, after))
            )
            return {key.decode(): (was, holds) for key, was, holds in pairs if was != holds}

    def _touched(self, rows: Rows, old: CommitRow | None, new: CommitRow) -> set[bytes]:
        """Return the keys that may differ between two commits."""
        near: set[bytes] = set()
        at = new
        for _ in range(max(_NEAR, new.known // _KEYS_A_LIST)):
            if old is not None and at.hash == old.hash:
                return near
            near |= rows.body(at).keys()
            parents = at.header.parents
            if not parents:
                if old is None:
                    return near
                break
            at = rows.place(parents[0])
        before = {} if old is None else rows.keys(old, b"")
        after = rows.keys(new, b"")
        return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}

    def events(self, commit: str) -> list[bytes]:
        """Return the events of a commit; see `Journal`."""
        with self._rows() as rows:
            return rows.events(rows.place(commit))

    # --- names ----------------------------------------------------------------------------------

    def resolve(self, text: str) -> str:
        """Return the hash of a branch, a tag or the start of a hash; see `Journal`."""
        with self._directory.database.reading() as db:
            refs = Refs(db, self._digest, self._directory.meta(db))
            named = refs.get("branch", text) or refs.get("tag", text)
            if named is not None:
                return named
            rows = Rows(db, self._digest)
            return choose(text, self._beginning(db, rows, text.lower()))

    def _beginning(self, db: sqlite3.Connection, rows: Rows, start: str) -> list[str]:
        """Return the hashes that begin so."""
        try:
            low = bytes.fromhex(start[:16].ljust(16, "0"))
            high = bytes.fromhex(start[:16].ljust(16, "f"))
        except ValueError:
            return []
        found = db.execute("SELECT header FROM commits WHERE id BETWEEN ? AND ?", (low, high)).fetchall()
        hashes = (self._digest(header).hex() for (header,) in found if isinstance(header, bytes))
        return [commit for commit in hashes if commit.startswith(start) and rows.find(commit)]

    def branches(self) -> dict[str, str]:
        """Return the head of each branch; see `Journal`."""
        with self._directory.database.reading() as db:
            return Refs(db, self._digest, self._directory.meta(db)).all("branch")

    def head(self, branch: str) -> str | None:
        """Return the head of one branch; see `Journal`."""
        with self._directory.database.reading() as db:
            return Refs(db, self._digest, self._directory.meta(db)).get("branch", branch)

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag; see `Journal`."""
        with self._directory.database.reading() as db:
            return Refs(db, self._digest, self._directory.meta(db)).all("tag")

    # --- care -----------------------------------------------------------------------------------

    def fsck(self) -> list[str]:
        """Check everything; see `Journal`."""
        from agex.state.disk.fsck import check_rows

        return check_rows(self._directory)

    def gc(self) -> Collected:
        """Drop what nothing reaches; see `Journal`."""
        from agex.state.disk.gc import collect_rows

        return collect_rows(self._directory)

    def close(self) -> None:
        """Let go of the files; see `Journal`."""
        self._directory.close()

    @contextmanager
    def _rows(self) -> Iterator[Rows]:
        with self._directory.database.reading() as db:
            yield Rows(db, self._digest)
