"""An open file of a workspace: its bytes in memory, written back whole."""

from __future__ import annotations

import errno
import io
import os
from typing import Any, Protocol

__all__ = ["OpenFile", "open_file"]

_READ, _WRITE = "r", "wxa"


class _Whole(Protocol):
    """The part of a file system that an open file uses."""

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, content: bytes) -> None: ...

    def exists(self, path: str) -> bool: ...

    def isdir(self, path: str) -> bool: ...

    def resolve_path(self, path: str) -> str: ...


def open_file(  # noqa: PLR0917 - the builtin's own parameters
    fs: Any,
    file: str | os.PathLike[str],
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: None = None,
) -> Any:
    """Open a file of *fs* like the builtin ``open``; text is UTF-8 unless said otherwise.

    What is written is kept when the file is flushed or closed.
    """
    kind, updating, binary = _parsed(mode)
    if binary and (encoding or errors or newline) is not None:
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    if not binary and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if not closefd or opener is not None:
        raise ValueError("a file of a workspace has no descriptor: leave closefd and opener out")
    path = os.fspath(file)
    if not isinstance(path, str):
        raise TypeError(f"a path of the workspace is text, not {type(path).__name__}")
    raw = OpenFile(fs, path, kind, updating=updating)
    if binary:
        return raw
    text: Any = io.TextIOWrapper(raw, encoding=_encoding(encoding), errors=errors, newline=newline)
    text.mode = mode
    return text


def _encoding(given: str | None) -> str:
    return "utf-8" if given in (None, "locale") else str(given)


def _parsed(mode: str) -> tuple[str, bool, bool]:
    kinds = [letter for letter in mode if letter in _READ + _WRITE]
    if (
        len(kinds) != 1
        or set(mode) - set("rwxabt+")
        or len(set(mode)) != len(mode)
        or {"b", "t"} <= set(mode)
    ):
        raise ValueError(f"invalid mode: {mode!r}")
    return kinds[0], "+" in mode, "b" in mode


class OpenFile(io.BytesIO):
    """The bytes of one file, written back when they are flushed.

    A file that is made anew brings the directories that it is in, as ``write`` does.
    A file that is opened for writing keeps what it held until something new is kept.
    """

    _changed = False  # a file that could not be opened is closed as well

    def __init__(self, fs: _Whole, path: str, kind: str, *, updating: bool) -> None:
        there = fs.exists(path)
        if kind == "x" and there:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if there and fs.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        fresh = kind in "wx" or (kind == "a" and not there)
        super().__init__(b"" if fresh else fs.read(path))
        if kind == "a":
            self.seek(0, os.SEEK_END)  # where it is tells whether there was anything
        self._fs, self._path = fs, fs.resolve_path(path)
        self._kind, self._updating = kind, updating
        self.name = path
        if fresh and not there:
            fs.write(self._path, b"")
        elif self.writable():
            self._require_room(0)  # one that cannot be written is told now
        self._changed = fresh and there

    @property
    def mode(self) -> str:
        """How it was opened, as the builtin says it: one that is emptied and updated is read and written."""
        kind = "r" if self._kind == "w" and self._updating else self._kind
        return f"{kind}b{'+' if self._updating else ''}"

    def readable(self) -> bool:
        return self._kind == "r" or self._updating

    def writable(self) -> bool:
        return self._kind != "r" or self._updating

    def read(self, size: int | None = -1, /) -> bytes:
        self._require(self.readable(), "readable")
        return super().read(size)

    read1 = read

    def readinto(self, buffer: Any, /) -> int:
        self._require(self.readable(), "readable")
        return super().readinto(buffer)

    readinto1 = readinto

    def readline(self, size: int | None = -1, /) -> bytes:
        self._require(self.readable(), "readable")
        return super().readline(size)

    def __next__(self) -> bytes:
        self._require(self.readable(), "readable")
        return super().__next__()

    def write(self, data: Any, /) -> int:
        self._require(self.writable(), "writable")
        if self._kind == "a":
            self.seek(0, os.SEEK_END)
        self._require_room(self.tell() + memoryview(data).nbytes)
        written = super().write(data)
        self._changed = True
        return written

    def writelines(self, lines: Any, /) -> None:
        for line in lines:
            self.write(line)

    def truncate(self, size: int | None = None, /) -> int:
        self._require(self.writable(), "writable")
        self._require_room(self.tell() if size is None else size)
        length = super().truncate(size)
        if size is not None and size > len(self.getbuffer()):
            at = self.seek(0, os.SEEK_END)
            super().write(bytes(size - at))
            self.seek(at)
        self._changed = True
        return length

    def _require_room(self, size: int) -> None:
        """Refuse what would not fit before it takes memory."""
        require_room = getattr(self._fs, "require_room", None)
        if require_room is not None:
            try:
                require_room(self._path, size)
            except OSError:
                self._changed = self._changed and self.tell() > 0  # what was there before stays
                raise

    def flush(self) -> None:
        if self._changed and not self.closed:
            self._fs.write(self._path, self.getvalue())
            self._changed = False

    def close(self) -> None:
        try:
            self.flush()
        finally:
            super().close()

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a file of a workspace has no descriptor")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise io.UnsupportedOperation(f"not {what}")
