"""Copying a store on disk while others write to it.

The database is copied as it was at one moment, by SQLite. A pack only grows, so that what the
database of that moment names of it is copied later without waiting for anybody; it is opened before, as
a collector may delete it meanwhile. The copy gets its name when it is whole and checked.

Reference: SQLite Online Backup API.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agex.errors import StateCorrupt, StateError
from agex.regular_files import open_regular
from agex.state.commits.length_prefixed import are_numbers
from agex.state.disk.database import full_disk
from agex.state.disk.packs import sync_directory

if TYPE_CHECKING:
    from agex.state.disk.directory import Directory
    from agex.state.disk.packs import Packs

__all__ = ["back_up"]

_TRIES = 10  # a collector begins a pack at most once in each of its runs
_PIECE = 1024 * 1024  # bytes copied at once
_OF_THE_COPY = frozenset({
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
})  # fmt: skip


def back_up(directory: Directory, out: Path) -> None:
    """Copy a store to a directory that is not there yet, and check the copy.

    Raises:
        StateFull: the disk is full.
        StateCorrupt: the store is damaged; no copy is made.
        StateError: there is something at *out*, or it cannot be written.
    """
    _require_place(directory.path, out)
    unfinished = out.with_name(f".{out.name}-{secrets.token_hex(4)}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()
        try:
            _copy(directory, unfinished)
            _require_whole(unfinished, directory.path)
            sync_directory(unfinished)
            if out.is_dir():
                out.rmdir()  # it is empty
            unfinished.rename(out)
            sync_directory(out.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    except OSError as error:
        raise full_disk(error, out) or StateError(f"{out} cannot be written ({error}).") from error


def _require_place(store: Path, out: Path) -> None:
    if store.resolve() in (out.resolve(), *out.resolve().parents):
        raise StateError(f"{out} is in the store itself; give a place of its own for the copy.")
    if os.path.lexists(out) and not (out.is_dir() and not out.is_symlink() and not any(out.iterdir())):
        raise StateError(f"There is something at {out} already; give a directory that is not there yet.")


def _require_whole(copy: Path, source: Path) -> None:
    from agex.state.disk.directory import Directory
    from agex.state.disk.fsck import check_rows

    opened = Directory(copy, size_limit=None, durable=True, mend=False)
    try:
        problems = check_rows(opened)
    finally:
        opened.close()
    if problems:
        raise StateCorrupt(f"{source} is damaged and was not copied: {problems[0]}")


def _copy(directory: Directory, to: Path) -> None:
    own = directory.again()
    try:
        for _ in range(_TRIES):
            with _opened(own.packs) as packs:
                needed = _copy_rows(own, to / "state.db")
                if needed.keys() <= packs.keys():
                    for number, end in needed.items():
                        _copy_start(packs[number], to / own.packs.path(number).name, end)
                    return
        raise StateCorrupt(f"{directory.path} is damaged and was not copied: a pack is gone.")
    finally:
        own.close()


@contextmanager
def _opened(packs: Packs) -> Iterator[dict[int, int]]:
    """Open all packs; yield their descriptors by number."""
    opened: dict[int, int] = {}
    try:
        for number in packs.numbers():
            try:
                opened[number] = open_regular(packs.path(number), alone=True)
            except FileNotFoundError:  # collected just now
                continue
        yield opened
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _copy_rows(own: Directory, to: Path) -> dict[int, int]:
    """Copy the database as it is at one moment; return the packs that it needs, and up to where."""
    to.unlink(missing_ok=True)
    with own.database.reading() as db, closing(sqlite3.connect(to)) as copy:
        meta = own.meta(db)
        query = "SELECT pack, max(at + length) FROM chunks WHERE pack IS NOT NULL GROUP BY pack"
        needed = dict(db.execute(query).fetchall())
        if not are_numbers(*needed, *needed.values()):
            raise StateCorrupt(f"{own.path} is damaged and was not copied: where its chunks lie.")
        if meta.pack_end:
            needed[meta.pack] = max(meta.pack_end, needed.get(meta.pack, 0))
        try:
            db.backup(copy)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_COPY:
                raise StateError(f"{to} cannot be written ({error}).") from error
            raise
    return needed


def _copy_start(descriptor: int, to: Path, size: int) -> None:
    with to.open("xb") as file, os.fdopen(os.dup(descriptor), "rb") as pack:
        left = size
        while left and (piece := pack.read(min(_PIECE, left))):
            file.write(piece)
            left -= len(piece)
        if left:
            raise StateCorrupt(f"A pack is damaged and was not copied: it ends {left:,} bytes too early.")
        file.flush()
        os.fsync(file.fileno())
