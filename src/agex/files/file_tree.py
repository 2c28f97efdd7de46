"""The base class of every file system of a workspace, and the protocol of its storage.

The protocol is that of monkeyfs and termish: sixteen methods over paths and bytes. `FileTree`
derives most of them from a few, so that each kind of workspace implements only where it differs.
"""

from __future__ import annotations

import abc
import errno
import hashlib
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import translate
from typing import Any, NoReturn, Protocol, TypeAlias

from monkeyfs import FileInfo, FileMetadata

from agex.files.open_file import open_file

__all__ = [
    "Entry",
    "FileStat",
    "FileTree",
    "Infos",
    "Names",
    "Revision",
    "Space",
    "failure",
    "metadata",
    "refuse",
]

Names: TypeAlias = list[str]
Infos: TypeAlias = list[FileInfo]

_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # bytes: PATH_MAX and NAME_MAX of Linux


class Entry(Protocol):
    """One file or directory, without its bytes."""

    @property
    def size(self) -> int: ...

    @property
    def created(self) -> float: ...

    @property
    def modified(self) -> float: ...


class Space(Protocol):
    """Where a virtual workspace keeps its files: flat, by path, without the slash a path begins with.

    A directory is an entry too: its path with a slash at the end, and no bytes.
    """

    @property
    def version(self) -> int:
        """Grow with every change."""
        ...

    @property
    def entries(self) -> Mapping[str, Entry]: ...

    def __getitem__(self, path: str, /) -> bytes: ...

    def __delitem__(self, path: str, /) -> None: ...

    def put(self, path: str, content: bytes, *, created: float, modified: float) -> None: ...

    def move(self, old: str, new: str) -> None: ...

    def set_time(self, path: str, modified: float) -> None: ...

    def stamp(self, path: str) -> object:
        """Return what equals the stamp of another entry only if both have the same content."""
        ...


@dataclass(frozen=True)
class Revision:
    """The files of one time. Two that are equal and have a version have the same files."""

    origin: object
    """Where the files are kept."""
    version: int | None
    """Grows with every change; None where changes are not noticed."""
    mounts: tuple[tuple[str, FileTree], ...] = ()
    """Trees that lie above those files, and never change."""


class FileTree(abc.ABC):
    """A tree of files and directories, with a working directory of its own.

    Paths are POSIX paths of text; ``..`` goes up by its name and never above the root. There are no
    links: making one is refused. What fails raises the `OSError` that the operating system would.
    """

    writes = 0
    """How often something was changed through this very object, where it counts that."""

    def __init__(self) -> None:
        self._cwd = "/"

    # -- implemented by each kind -------------------------------------------------------------------

    @abc.abstractmethod
    def stat(self, path: str) -> FileMetadata:
        """Describe a file or directory."""

    @abc.abstractmethod
    def list(self, path: str = ".", recursive: bool = False) -> Names:
        """Return the names in a directory, sorted; with *recursive* the paths below it."""

    @abc.abstractmethod
    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """Return the bytes of a file, or *size* of them from *offset* on."""

    @abc.abstractmethod
    def write(self, path: str, content: bytes, mode: str = "w") -> None:
        """Write a file, whole and at once, or with ``mode="a"`` add to its end; make its directories."""

    @abc.abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file."""

    @abc.abstractmethod
    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""

    @abc.abstractmethod
    def mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a directory."""

    @abc.abstractmethod
    def rename(self, src: str, dst: str) -> None:
        """Move a file or directory; an existing file gives way."""

    @abc.abstractmethod
    def utime(self, path: str, times: tuple[float, float] | None = None) -> None:
        """Say when a file was modified: the second of *times*, seconds since the epoch; now if not given."""

    def islink(self, path: str) -> bool:
        """Return whether it is a link."""
        return False

    # -- derived from these ----------------------------------------------------------------------------

    def resolve_path(self, path: str) -> str:
        """Return the absolute path of *path*, without ``.`` and ``..``.

        Raises:
            OSError: it is too long, or no text that a file could be named by.
            ValueError: it has a null in it.
        """
        if "\0" in path:
            raise ValueError("embedded null byte")
        try:
            length = len(path.encode())
        except UnicodeEncodeError:
            raise failure(errno.EILSEQ, path) from None
        resolved = posixpath.normpath(posixpath.join(self._cwd, path))
        names = resolved.split("/")
        if length > _LONGEST_PATH or any(len(name.encode()) > _LONGEST_NAME for name in names):
            raise failure(errno.ENAMETOOLONG, path)
        return "/" + resolved.lstrip("/")

    realpath = resolve_path

    def max_bytes(self) -> int | None:
        """Return the most bytes that all files may have together; None for no limit."""
        return None

    def revision(self) -> Revision:
        """Return what tells the files of now from those of another time."""
        return Revision(self, None)

    def stamps(self) -> dict[str, object]:
        """Return a stamp of each file and directory, by path from the root, those with a slash at the end.

        Two stamps of one path are equal only if the content is the same.
        """
        found: dict[str, object] = {}
        for path in self.list("/", recursive=True):
            is_dir = self.isdir(f"/{path}")
            found[f"{path}/" if is_dir else path] = None if is_dir else self.stamp(path)
        return found

    def stamp(self, path: str) -> object:
        """Return the stamp of a file."""
        about = self.stat(f"/{path}")
        return about.size, about.created_at, about.modified_at

    def getcwd(self) -> str:
        """Return the working directory."""
        return self._cwd

    def chdir(self, path: str) -> None:
        """Make another directory the working directory."""
        if not self.isdir(path):
            raise failure(errno.ENOTDIR if self.exists(path) else errno.ENOENT, path)
        self._cwd = self.resolve_path(path)

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory."""
        return self._stat(path) is not None

    def lexists(self, path: str) -> bool:
        """Return whether there is anything."""
        return self.exists(path) or self.islink(path)

    def isfile(self, path: str) -> bool:
        """Return whether there is a file."""
        found = self._stat(path)
        return found is not None and not found.is_dir

    def isdir(self, path: str) -> bool:
        """Return whether there is a directory."""
        found = self._stat(path)
        return found is not None and found.is_dir

    def _stat(self, path: str) -> FileMetadata | None:
        try:
            return self.stat(path)
        except (OSError, ValueError):
            return None

    def getsize(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self.stat(path).size

    def samefile(self, path1: str, path2: str) -> bool:
        """Return whether two paths lead to one file."""
        for path in (path1, path2):
            self.stat(path)
        return self.resolve_path(path1) == self.resolve_path(path2)

    def access(self, path: str, mode: int) -> bool:
        """Return whether *path* is there; there are no permissions to forbid anything, or to execute."""
        found = self._stat(path)
        return found is not None and (found.is_dir or not mode & os.X_OK)

    def chmod(self, path: str, mode: int) -> None:
        """Check that *path* is there. A workspace has no permissions: files are 644, directories 755."""
        self.stat(path)

    def makedirs(self, path: str, exist_ok: bool = True) -> None:
        """Make a directory and those above it."""
        self.mkdir(path, parents=True, exist_ok=exist_ok)

    def replace(self, src: str, dst: str) -> None:
        """Move a file or directory; an existing file gives way."""
        self.rename(src, dst)

    def truncate(self, path: str, length: int) -> None:
        """Make a file that long: cut it, or add zeros."""
        content = self.read(path)
        self.write(path, content[:length].ljust(length, b"\0"))

    def open(self, file: str | os.PathLike[str], mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """Open a file like the builtin ``open``; text is UTF-8 unless said otherwise."""
        return open_file(self, file, mode, *args, **kwargs)

    def list_detailed(self, path: str = ".", recursive: bool = False) -> Infos:
        """Describe what is in a directory; paths begin as *path* does."""
        found = []
        for below in self.list(path, recursive):
            at = below if path in ("", ".") else posixpath.join(path, below)
            about = self._stat(at)
            if about is not None:
                name = posixpath.basename(below)
                found.append(
                    FileInfo(name, at, about.size, about.created_at, about.modified_at, about.is_dir)
                )
        return found

    def read_many(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the bytes of those of the paths that are files."""
        return {path: self.read(path) for path in paths if self.isfile(path)}

    def glob(self, pattern: str) -> Names:
        """Return the paths that fit, sorted; ``**`` is any number of directories."""
        start = "/" if pattern.startswith("/") else "."
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        return sorted(set(self._glob(start, parts)))

    def _glob(self, at: str, parts: Names) -> Iterable[str]:
        if not parts:
            yield at
            return
        first, *rest = parts
        if first == "..":
            yield from self._glob(posixpath.join(at, ".."), rest)
            return
        if first == "**":
            yield from self._glob(at, rest)
        if not self.isdir(at):
            return
        fits = re.compile(translate("*" if first == "**" else first)).match
        for name in self.list(at):
            below = name if at == "." else posixpath.join(at, name)
            if first == "**":
                if self.isdir(below):
                    yield from self._glob(below, parts)
                elif not rest:
                    yield below
            elif fits(name):
                yield from self._glob(below, rest)

    def symlink(self, src: str, dst: str) -> NoReturn:
        """Refuse: a workspace has no links."""
        refuse("links", dst)

    def link(self, src: str, dst: str) -> NoReturn:
        """Refuse: a workspace has no links."""
        refuse("links", dst)

    def readlink(self, path: str) -> NoReturn:
        """Refuse: a workspace has no links."""
        self.stat(path)
        raise failure(errno.EINVAL, path)

    def chown(self, path: str, uid: int, gid: int) -> NoReturn:
        """Refuse: a workspace has no owners."""
        refuse("owners", path)


def failure(number: int, path: str) -> OSError:
    """Return the error of the operating system that has this number."""
    return OSError(number, os.strerror(number), path)


def refuse(what: str, path: str) -> NoReturn:
    """Raise the error for an operation that a workspace does not have."""
    raise PermissionError(errno.EPERM, f"there are no {what} in a workspace", path)


@dataclass
class FileStat(FileMetadata):
    """The description of a file, in the form of the protocol."""

    number: int = 0
    """Tells one file from another, as an inode's does."""

    @property
    def st_ino(self) -> int:
        return self.number


def metadata(path: str, size: int, created: float, modified: float, *, is_dir: bool) -> FileMetadata:
    """Return what is known of a file at an absolute path, in the form of the protocol."""
    number = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=7).digest(), "big")
    return FileStat(size, _iso(created), _iso(modified), is_dir, number)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
