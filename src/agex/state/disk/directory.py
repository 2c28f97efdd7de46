"""The directory of a store on disk: its files, how it is made, and its description of itself.

``state.db`` holds rows, ``pack`` large chunks, and ``last`` the number of the last change. That
number is written after the change is on disk, so it is never ahead of the rows, unless some
were lost: damage to SQLite's log makes changes vanish without a word.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from agex.errors import StateCorrupt, StateError, StateFull
from agex.regular_files import open_regular, read_regular
from agex.state.commits.digests import Digest, new_digest, open_digest
from agex.state.commits.length_prefixed import pack, unpack
from agex.state.disk.database import Database, full_disk
from agex.state.disk.packs import Packs, sync_directory
from agex.state.disk.recovery import roll_back
from agex.state.disk.schema import Meta, create_tables, require_tables
from agex.state.disk.store_files import is_ours

__all__ = ["FORMAT", "Directory"]

FORMAT = 1
"""The number of the format. A store of a higher one is refused."""

_APPLICATION = 0x61676578  # "agex", where `file` and others look for it
_MOST_NOTED = 1000  # bytes of `last`; it has 20


class Directory:
    """A store's files, open.

    With *mend*, commits that a loss of power has left without their chunks are dropped.

    Attributes:
        path: the directory.
        durable: whether a commit waits until the disk has it.
        size_limit: bytes, or None.
        digest: what its content is checked with.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, size_limit: int | None, durable: bool, mend: bool = True
    ) -> None:
        self.path = Path(path).absolute()
        self.durable = durable
        self.size_limit = size_limit
        _make(self.path)
        self.database = Database(self.path / "state.db", durable=durable, verify=partial(_verify, self.path))
        self.packs = Packs(self.path)
        self.digest: Digest
        try:
            self._open(mend=mend)
        except BaseException:
            self.database.close()
            raise
        # Who forgets to close a store, or ends, leaves no log behind for the next one to read.
        weakref.finalize(self, _let_go, self.database, self.packs)

    def again(self) -> Directory:
        """Return the same store on a connection of its own, for long work beside the writers.

        It waits for the disk: what is deleted after a change must not be needed again.
        """
        return Directory(self.path, size_limit=None, durable=True, mend=False)

    def meta(self, db: sqlite3.Connection) -> Meta:
        """Return the store's own row.

        Raises:
            StateCorrupt: it is missing or damaged.
        """
        row = db.execute(
            'SELECT format, digest, generation, pack, pack_end, refs, "check" FROM store WHERE one = 1'
        ).fetchone()
        meta = None if row is None or self.digest.check(*row[:-1]) != row[-1] else Meta(*row[2:-1])
        if meta is None or not meta.is_sound:
            raise StateCorrupt(f"What {self.path} says of itself is damaged.")
        return meta

    @contextmanager
    def changing(self, *, mending: bool = False) -> Iterator[tuple[sqlite3.Connection, Meta]]:
        """Yield the connection for one change of the store, and the store's own row as it will be after it.

        Args:
            mending: the pack may be shorter than it should be.

        Raises:
            StateFull: the disk is full.
            StateCorrupt: the pack is shorter than it was.
            StateError: the store cannot be written, or is not where it was opened.
        """
        with self.database.writing() as db:
            meta = self.meta(db)
            meta.generation += 1
            if not mending:
                self.packs.require(meta.pack, meta.pack_end)
            yield db, meta
            self._write_meta(db, meta)
        if not mending:
            self.packs.require(meta.pack, meta.pack_end)
        if self.durable:
            self._note(meta.generation)

    def require_space(self, db: sqlite3.Connection, more: int) -> None:
        """Refuse a change that would pass the size limit.

        Raises:
            StateFull: with the figures.
        """
        if self.size_limit is None:
            return
        used = self.used(db)
        if used + more > self.size_limit:
            raise StateFull(
                f"The commit needs about {more:,} bytes, and {self.path} holds {used:,} of the "
                f"{self.size_limit:,} allowed; nothing was written. Raise `size_limit`, or delete branches "
                "and call `gc()`."
            )

    def used(self, db: sqlite3.Connection) -> int:
        """Return how many bytes the store's content takes."""
        pages, free, size = (
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size + sum(map(self.packs.size, self.packs.numbers())))

    def close(self) -> None:
        """Let go of the files; the next use opens them again."""
        _let_go(self.database, self.packs)

    def _open(self, *, mend: bool) -> None:
        # Looked at before the database, which is there by then if another process is making the store.
        noted, packs = self._noted(), self.packs.numbers()
        with self.database.reading() as db:
            fresh = _is_empty(db)
        if fresh and (noted or packs):
            raise StateCorrupt(
                f"{self.path / 'state.db'} is empty or gone, but the rest of the store is there."
            )
        if fresh:
            with self.database.writing() as db:
                if _is_empty(db):  # still: another process may have been faster
                    self._create(db)
        with self.database.reading() as db:
            self.digest = _recognize(db, self.path)
            meta = self.meta(db)
        if noted is not None and noted[0] > meta.generation:
            self._require_noted(noted[0], noted[1], meta.generation)
        if mend and not self.database.is_readonly and self.packs.size(meta.pack) < meta.pack_end:
            roll_back(self)

    def _create(self, db: sqlite3.Connection) -> None:
        create_tables(db)
        self.digest = new_digest()
        self._write_meta(db, Meta(0, 0, 0, bytes(32)))
        db.execute(f"PRAGMA application_id={_APPLICATION}")
        db.execute(f"PRAGMA user_version={FORMAT}")

    def _write_meta(self, db: sqlite3.Connection, meta: Meta) -> None:
        row = (FORMAT, self.digest.name.encode(), meta.generation, meta.pack, meta.pack_end, meta.refs)
        db.execute("REPLACE INTO store VALUES (1, ?, ?, ?, ?, ?, ?, ?)", (*row, self.digest.check(*row)))

    def _note(self, generation: int) -> None:
        """Write down the number of a change that is on disk, without waiting: to be behind is no harm."""
        number = b"%d" % generation
        try:
            descriptor = open_regular(self.path / "last", os.O_WRONLY | os.O_CREAT, alone=True)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.write(pack(number, self.digest.check(number)))
        except OSError:  # a full disk: the change itself is kept
            return

    def _noted(self) -> tuple[int, bytes] | None:
        """Return the number that was written down, and its check."""
        try:
            number, check = unpack(read_regular(self.path / "last", most=_MOST_NOTED, alone=True))[:2]
            return int(number), check
        except (OSError, ValueError, StateCorrupt):  # torn or damaged: a help that is not there
            return None

    def _require_noted(self, number: int, check: bytes, generation: int) -> None:
        if self.digest.check(b"%d" % number) == check:
            raise StateCorrupt(
                f"{self.path} has had {number} changes, but state.db ends at number {generation}: its log "
                "state.db-wal was damaged or deleted. Restore it from a backup, or delete the file `last` "
                "to go on from there."
            )


def _let_go(database: Database, packs: Packs) -> None:
    packs.close()
    database.close()


def _make(path: Path) -> None:
    """Make the directory, or say why it cannot be a store."""
    try:
        if path.exists() and not path.is_dir():
            raise StateError(
                f"{path} is a file; a store is a directory: give the path of one, or of none yet."
            )
        if not path.exists():
            above = next(parent for parent in path.parents if parent.exists())
            path.mkdir(parents=True, exist_ok=True)
            for directory in (path, *path.parents):
                sync_directory(directory)
                if directory == above:
                    break
        names = {entry.name for entry in path.iterdir()}
    except OSError as error:
        raise full_disk(error, path) or StateError(
            f"{path} cannot be used as a store ({error}); give a directory that this user may write."
        ) from error
    others = sorted(name for name in names if not is_ours(name))
    if others and "state.db" not in names:
        raise StateError(
            f"{path} is a directory of other things ({', '.join(others[:3])}); "
            "give an empty one, or a path where there is none yet."
        )


def _verify(path: Path, db: sqlite3.Connection) -> None:
    """Refuse a database that is not one of a store of this format."""
    if not _is_empty(db):
        _require_format(db, path)
        require_tables(db, path / "state.db")


def _is_empty(db: sqlite3.Connection) -> bool:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return (application, tables) == (0, 0)


def _require_format(db: sqlite3.Connection, path: Path) -> int:
    """Return the number of the format; refuse another program's, and a newer one."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application != _APPLICATION:
        raise StateError(f"{path / 'state.db'} is a database of another program, or its header is damaged.")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        raise StateError(
            f"{path} is written in format {version} by a newer agex; this one reads up to {FORMAT}: "
            "run `pip install --upgrade agex-py`."
        )
    return int(version)


def _recognize(db: sqlite3.Connection, path: Path) -> Digest:
    """Return the digest of a store of this format."""
    version = _require_format(db, path)
    row = db.execute("SELECT format, digest FROM store WHERE one = 1").fetchone()
    if row is None or row[0] != version or not isinstance(row[1], bytes):
        raise StateCorrupt(f"What {path} says of itself is damaged.")
    return open_digest(row[1].decode("ascii", "replace"))
