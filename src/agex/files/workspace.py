"""Files in memory, and an ``open`` over them with the semantics of the builtin."""

from __future__ import annotations

import io
import os
from typing import Any

from monkeyfs import VirtualFS

from agex.errors import DefinitionError

__all__ = ["Workspace", "connect_fs"]

_READ, _WRITE = "r", "wxa"


def connect_fs(type: str = "virtual", *, max_size_mb: int | None = None) -> Workspace:  # noqa: A002 - the contract's name
    """Open a workspace.

    Args:
        type: ``"virtual"``: files in memory.
        max_size_mb: of all files together, in MiB; a write that would pass it raises ``OSError``.

    Raises:
        DefinitionError: there is no such type.
    """
    if type != "virtual":
        raise DefinitionError(f"connect_fs(type={type!r}): only 'virtual' is there yet.")
    return Workspace(VirtualFS(max_size_mb=max_size_mb))


class Workspace:
    """The files of one agent.

    Args:
        fs: where they are kept.
    """

    def __init__(self, fs: VirtualFS) -> None:
        self.fs = fs

    def open(  # noqa: PLR0917 - the builtin's own parameters
        self,
        file: str | os.PathLike[str],
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """Open a file of the workspace like the builtin ``open``; text is UTF-8 unless said otherwise.

        What is written is kept when the file is flushed or closed.
        """
        kind, updating, binary = _parsed(mode)
        if binary and (encoding or errors or newline) is not None:
            raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
        if not binary and buffering == 0:
            raise ValueError("can't have unbuffered text I/O")
        path = os.fspath(file)
        if not isinstance(path, str):
            raise TypeError(f"a path of the workspace is text, not {type(path).__name__}")
        raw = _File(self.fs, path, kind, updating=updating)
        if binary:
            return raw
        return io.TextIOWrapper(raw, encoding=encoding or "utf-8", errors=errors, newline=newline)


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


class _File(io.BytesIO):
    """The bytes of one file, written back when they are flushed."""

    _changed = False  # a file that could not be opened is closed as well

    def __init__(self, fs: VirtualFS, path: str, kind: str, *, updating: bool) -> None:
        if kind == "x" and fs.exists(path):
            raise FileExistsError(17, "File exists", path)
        fresh = kind in "wx" or (kind == "a" and not fs.exists(path))
        super().__init__(b"" if fresh else fs.read(path))
        self._fs, self._path = fs, path
        self._kind, self._updating = kind, updating
        self._changed = fresh
        self.name = path
        if fresh:
            self.flush()  # an impossible path is told now

    @property
    def mode(self) -> str:
        return f"{self._kind}b{'+' if self._updating else ''}"

    def readable(self) -> bool:
        return self._kind == "r" or self._updating

    def writable(self) -> bool:
        return self._kind != "r" or self._updating

    def read(self, size: int | None = -1, /) -> bytes:
        self._require(self.readable(), "readable")
        return super().read(size)

    read1 = read

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
        self._changed = True
        return super().write(data)

    def truncate(self, size: int | None = None, /) -> int:
        self._require(self.writable(), "writable")
        self._changed = True
        return super().truncate(size)

    def flush(self) -> None:
        if self._changed and not self.closed:
            self._fs.write(self._path, self.getvalue())
            self._changed = False

    def close(self) -> None:
        try:
            self.flush()
        finally:
            super().close()

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise io.UnsupportedOperation(f"not {what}")
