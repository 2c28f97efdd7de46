"""The files of a store's directory: that they are files of its own, and stay where they were.

A store may come from a stranger, and be moved, deleted or put in another's place while it is open.
SQLite's own files are only looked at here: a process that opens and closes one takes away the locks that
SQLite holds on it in this process.

Reference: SQLite, How To Corrupt An SQLite Database File, section 2.2.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from agex.errors import StateError
from agex.regular_files import read_regular, require_regular

__all__ = ["Standing", "is_ours", "is_pack", "look", "require_own"]

_OURS = frozenset({"state.db", "state.db-wal", "state.db-shm", "state.db-journal", "last"})
_PACK = re.compile(r"pack(\.[1-9][0-9]{0,17})?")
_JOURNAL_END = bytes.fromhex("d9d505f920a163d7")  # of a rollback journal that names another file
_MOST_JOURNAL = 64 * 1024 * 1024  # bytes; only a store that was being made has one, of some pages


def is_ours(name: str) -> bool:
    """Return whether a store has files of that name."""
    return name in _OURS or is_pack(name)


def is_pack(name: str) -> bool:
    """Return whether a file of that name is a pack."""
    return _PACK.fullmatch(name) is not None


def require_own(directory: Path) -> None:
    """Refuse a store with links, pipes or devices where its files should be.

    A rollback journal may name another file, which SQLite deletes when it is done: no store of ours
    has one that does.

    Raises:
        StateError: with the file.
    """
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if is_ours(entry.name):
                    require_regular(entry.stat(follow_symlinks=False), entry.path, alone=True)
        journal = read_regular(directory / "state.db-journal", most=_MOST_JOURNAL)
    except FileNotFoundError:  # there is no journal, or it is gone since: another process makes the store
        return
    except OSError as error:
        raise StateError(
            f"{error.filename or directory} is not used: {error.strerror}. A store's files are its own; copy "
            "the store with `cp -rL` if you trust where it came from."
        ) from error
    if journal.endswith(_JOURNAL_END) and len(journal) > len(_JOURNAL_END):
        raise StateError(
            f"{directory / 'state.db-journal'} is not used: it would have SQLite delete another file. "
            "agex makes no such journal; delete it if you trust the rest of the store."
        )


def look(path: str) -> os.stat_result | None:
    """Return the status of a path, of a link itself; None where there is nothing."""
    try:
        return os.lstat(path)  # a `Path` takes longer, and each commit looks six times
    except FileNotFoundError:
        return None


class Standing:
    """Files that stay what they are while they are open: the same ones, and no shorter."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._known: dict[str, tuple[int, int, int] | None] = dict.fromkeys(map(str, paths))
        self.require()

    def require(self) -> None:
        """Compare the files with what they were the last time.

        Raises:
            StateError: one was moved, deleted, replaced or cut.
        """
        for path, before in self._known.items():
            found = look(path)
            now = None if found is None else (found.st_dev, found.st_ino, found.st_size)
            if before is not None and (now is None or now[:2] != before[:2] or now[2] < before[2]):
                raise StateError(
                    f"{path} was moved, deleted, replaced or cut while the store was open, so that what is "
                    "written would be lost. Put it back, or open the store anew."
                )
            self._known[path] = now
