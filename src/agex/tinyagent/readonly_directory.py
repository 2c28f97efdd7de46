"""Read-only access of an agent's code to the files of one directory.

A file is handed out as a stream in memory. The path is walked name by name without following
links, so that neither ``..`` nor a symbolic link, also one put there meanwhile, leads out.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agex.errors import SandboxError
from agex.sandbox.runtime import audit_hook as wall

__all__ = ["Directory"]

MAX_BYTES = 1 << 30
"""A larger file is refused: it is held in memory whole."""

_INNER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# A pipe must not make the host wait for a writer.
_FILE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Directory:
    """A directory whose files can be read.

    Args:
        root: the directory; a relative one is looked up when a file is read.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def open(  # noqa: PLR0917 - the builtin's parameters
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> io.StringIO | io.BytesIO:
        """Open a file for reading.

        Raises:
            SandboxError: the mode is another, or the path leads out of the directory.
            OSError: there is no such file, or it is no plain file.
        """
        if set(_text(mode, "mode")) - set("rbt"):
            raise SandboxError(
                f"open(mode={mode!r}): files can be read here, not written; use mode 'r' or 'rb'"
            )
        data = self.read(file)
        if "b" in mode:
            return io.BytesIO(data)
        text = data.decode(_text(encoding or "utf-8", "encoding"), _text(errors or "strict", "errors"))
        return io.StringIO(text, newline=newline)

    def read(self, path: object) -> bytes:
        """Return the content of a file, as `open` does."""
        names = self.names(_text(path, "file"))
        if not names:
            raise SandboxError(_outside(str(path)))
        with self._folder(names[:-1], path) as folder:
            return _content(os.open(names[-1], _FILE, dir_fd=folder), path)

    def stat(self, path: str) -> os.stat_result:
        """Describe a file or directory; a link as such."""
        names = self.names(path)
        with self._folder(names[:-1], path) as folder:
            return os.stat(names[-1] if names else ".", dir_fd=folder, follow_symlinks=False)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        with self._folder(self.names(path), path) as folder:
            return sorted(os.listdir(folder))  # noqa: PTH208 - by its descriptor, which no link replaces

    @contextmanager
    def _folder(self, names: Sequence[str], path: object) -> Iterator[int]:
        """Open a directory below this one, name by name."""
        with wall.permitted("files"):
            folder = os.open(self.root, _INNER & ~getattr(os, "O_NOFOLLOW", 0))
            try:
                for name in names:
                    inner = os.open(name, _INNER, dir_fd=folder)
                    os.close(folder)
                    folder = inner
                yield folder
            except OSError as error:
                raise _named(error, path) from None
            finally:
                os.close(folder)

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names that lead to a path; none for the directory itself.

        Raises:
            SandboxError: it is outside.
        """
        where = Path(path)
        if where.is_absolute():
            try:
                where = where.relative_to(Path(os.path.abspath(self.root)))  # noqa: PTH100 - links stay as they are
            except ValueError:
                raise SandboxError(_outside(path)) from None
        if not path or ".." in where.parts or "\0" in path:
            raise SandboxError(_outside(path))
        return where.parts


def _content(descriptor: int, path: object) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path!r} is not a plain file")
        if found.st_size > MAX_BYTES:
            raise OSError(f"{path!r} has {found.st_size:,} bytes; up to {MAX_BYTES:,} can be read")
        return file.read(MAX_BYTES)


def _named(error: OSError, path: object) -> OSError:
    """Return an error that says the path as it was asked for, and no more of where it lies."""
    if error.errno is None:
        return error
    return OSError(error.errno, os.strerror(error.errno), path)


def _outside(path: str) -> str:
    return (
        f"{path!r} is outside of the working directory; files of that directory can be read, by their names"
    )


def _text(value: object, what: str) -> str:
    if type(value) is not str:
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    return value
