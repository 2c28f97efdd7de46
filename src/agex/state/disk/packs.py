"""The pack: chunks one behind the other in a file that only grows.

Where a chunk lies stands in the database, which is committed after the pack is on disk. So
what the database names is there; what a commit that never ended has written lies behind the
end, and the next one writes over it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from agex.errors import StateCorrupt, StateError
from agex.regular_files import open_regular
from agex.state.commits.length_prefixed import are_numbers
from agex.state.disk.database import full_disk
from agex.state.disk.store_files import is_pack, look

__all__ = ["Packs", "sync_directory"]


class Packs:
    """The packs of a directory, by number: ``pack`` is number 0, the collector starts ``pack.1`` and so on.

    Threads take turns.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pack = str(directory / "pack")
        self._lock = threading.Lock()  # a file has one position
        self._files: dict[int, BinaryIO] = {}
        self._seen: dict[int, tuple[int, int]] = {}  # the packs' devices and inodes
        self._process = 0

    def path(self, number: int) -> Path:
        """Return the file of a pack."""
        return self._directory / (f"pack.{number}" if number else "pack")

    def size(self, number: int) -> int:
        """Return how long a pack is; 0 where there is none."""
        found = look(str(self.path(number)))
        return 0 if found is None else found.st_size

    def require(self, number: int, end: int) -> None:
        """Refuse to go on with a pack that is not the one that was there, or is shorter than it was.

        Raises:
            StateCorrupt: it is too short.
            StateError: it was moved, deleted or replaced.
        """
        if not end:  # nothing is in it
            return
        found = look(f"{self._pack}.{number}" if number else self._pack)
        size = 0 if found is None else found.st_size
        now = None if found is None else (found.st_dev, found.st_ino)
        if now != self._seen.get(number, now):
            raise StateError(
                f"{self.path(number)} was moved, deleted or replaced while the store was open. Put it back, "
                "or open the store anew."
            )
        if size < end:
            raise _too_short(self.path(number), size, end)
        if now is not None:
            self._seen[number] = now

    def numbers(self) -> list[int]:
        """Return the packs that there are files of."""
        found = (path.name for path in self._directory.iterdir())
        names = (name.removeprefix("pack").removeprefix(".") for name in found if is_pack(name))
        return sorted(int(name or 0) for name in names)

    def append(self, number: int, end: int, chunks: Iterable[bytes | memoryview], *, durable: bool) -> int:
        """Write chunks at the end of a pack, and with *durable* wait until they are on disk.

        Returns:
            The new end.

        Raises:
            StateFull: the disk is full.
            StateError: it cannot be written.
        """
        begin, path = end, self.path(number)
        try:
            with self._lock:
                file = self._file(number, write=True)
                file.seek(begin)
                for chunk in chunks:
                    end += _write(file, chunk)
                if durable:
                    _sync(file.fileno())
            if durable and begin == 0:
                sync_directory(self._directory)
        except OSError as error:
            self._cut(number, begin)
            raise full_disk(error, path) or StateError(f"{path} cannot be written ({error}).") from error
        return end

    def _cut(self, number: int, end: int) -> None:
        """Cut off bytes that were written in vain, where that can be done: the disk may be full."""
        with contextlib.suppress(OSError), self._lock:
            self._file(number, write=True).truncate(end)

    def read(self, number: int, at: int, length: int) -> bytes:
        """Return a part of a pack.

        Raises:
            StateCorrupt: the pack is gone or too short, or this is no place in one.
        """
        if not are_numbers(number, at, length):
            raise StateCorrupt("Where a chunk of the store lies is damaged.")
        path = self.path(number)
        if not 0 <= at <= at + length <= self.size(number):
            raise _too_short(path, self.size(number), at + length)
        try:
            with self._lock:
                file = self._file(number, write=False)
                file.seek(at)
                return file.read(length)
        except OSError as error:
            raise StateCorrupt(f"{path} cannot be read ({error}).") from error

    def remove(self, number: int) -> None:
        """Delete a pack; its space is free once no process has it open."""
        with self._lock:
            file = self._files.pop(number, None)
            if file is not None:
                file.close()
        self.path(number).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of all files."""
        with self._lock:
            self._close()
            self._seen.clear()

    def _close(self) -> None:
        while self._files:
            self._files.popitem()[1].close()

    def _file(self, number: int, *, write: bool) -> BinaryIO:
        if self._process != os.getpid():  # a file's position is shared with the process that forked
            self._close()
            self._process = os.getpid()
        file = self._files.get(number)
        if file is not None and (file.writable() or not write):
            return file
        if file is not None:
            file.close()
        flags = os.O_RDWR | os.O_CREAT if write else os.O_RDONLY
        descriptor = open_regular(self.path(number), flags, alone=True)
        self._files[number] = file = os.fdopen(descriptor, "r+b" if write else "rb", buffering=0)
        return file


def _too_short(path: Path, size: int, end: int) -> StateCorrupt:
    return StateCorrupt(f"{path} has {size:,} bytes; a chunk was written up to {end:,}.")


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on disk, where the operating system can say so."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:  # Windows opens no directories
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(file: BinaryIO, chunk: bytes | memoryview) -> int:
    """Write all of a chunk, and return its length. A file without a buffer may take less at a time."""
    rest = whole = memoryview(chunk).cast("B")
    while rest:
        rest = rest[file.write(rest) :]
    return len(whole)


_sync = getattr(os, "fdatasync", os.fsync)  # times of a file need not be on disk; macOS syncs all
