"""``os`` over one workspace: its functions for files."""

from __future__ import annotations

import errno
import os
import posixpath
import stat as kinds
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from agex.files.file_tree import failure
from agex.files.guest_files import GuardedFiles

__all__ = ["PUBLIC", "FileOs", "composed", "plain_function", "stat_result"]

_SAME = (
    "F_OK O_APPEND O_CREAT O_EXCL O_RDONLY O_RDWR O_TRUNC O_WRONLY PathLike R_OK SEEK_CUR SEEK_END SEEK_SET "
    "W_OK X_OK altsep curdir defpath devnull error extsep fsdecode fsencode fspath linesep name pardir "
    "pathsep sep stat_result strerror urandom"
).split()
"""Members that touch no file."""


class DirEntry:
    """An entry that ``os.scandir`` yields."""

    def __init__(self, files: GuardedFiles, directory: str, name: str) -> None:
        self.name = name
        self.path = posixpath.join(directory, name)
        self._stat = stat_result(files, self.path, follow=False)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a directory."""
        return kinds.S_ISDIR(self._stat.st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a file."""
        return kinds.S_ISREG(self._stat.st_mode)

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        return kinds.S_ISLNK(self._stat.st_mode)

    def is_junction(self) -> bool:
        """Return whether it is a junction of Windows."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return what was known when it was listed."""
        return self._stat

    def inode(self) -> int:
        """Return its number."""
        return self._stat.st_ino

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


class _Scan:
    """The iterator that ``os.scandir`` returns."""

    def __init__(self, entries: list[DirEntry]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[DirEntry]:
        return self

    def __next__(self) -> DirEntry:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the rest go."""
        self._entries = iter(())


def stat_result(files: GuardedFiles, path: Any, *, follow: bool = True) -> os.stat_result:
    """Return what the workspace knows of a path, in the form of the operating system."""
    if not follow and files.islink(path):
        return os.stat_result((kinds.S_IFLNK | 0o777, 0, 1, 1, 0, 0, 0, 0.0, 0.0, 0.0))
    found = files.stat(path)
    times = (found.st_atime, found.st_mtime, found.st_ctime)
    nanoseconds = {
        f"st_{name}_ns": round(seconds * 1e9)
        for name, seconds in zip(("atime", "mtime", "ctime"), times, strict=True)
    }
    fields = (found.st_mode, found.st_ino, 1, 1, 0, 0, found.size, *times)
    return os.stat_result(fields, nanoseconds)


class FileOs:
    """The functions of ``os`` over some files; each does what its namesake does."""

    def __init__(self, files: GuardedFiles) -> None:
        self._files = files
        self._opened: dict[int, Any] = {}
        """Descriptors, whose numbers are of this workspace only."""
        self._environ: dict[str, str] = {"HOME": "/"}  # the umask of this process is not shown to guest code

    def members(self) -> dict[str, Any]:
        """Return the functions by name, and the other members of ``os``."""
        functions = {name: plain_function(getattr(self, name), "os") for name in _FUNCTIONS}
        return {
            **{name: getattr(os, name) for name in _SAME},
            **functions,
            "DirEntry": DirEntry,
            "environ": self._environ,
            "st": kinds,
            "sys": sys,
            "supports_dir_fd": frozenset(),
            "supports_fd": frozenset(),
            "supports_follow_symlinks": frozenset(),
        }

    def access(self, path: Any, mode: int) -> bool:
        return self._files.access(path, mode)

    def chdir(self, path: Any) -> None:
        self._files.chdir(path)

    def chmod(self, path: Any, mode: int, *, follow_symlinks: bool = True) -> None:
        self._files.chmod(path, mode)

    def getcwd(self) -> str:
        return self._files.getcwd()

    def link(self, src: Any, dst: Any) -> None:
        self._files.link(src, dst)

    def listdir(self, path: Any = ".") -> list[str]:
        return self._files.list(path)

    def lstat(self, path: Any) -> os.stat_result:
        return stat_result(self._files, path, follow=False)

    def makedirs(self, name: Any, mode: int = 0o777, exist_ok: bool = False) -> None:
        self._files.makedirs(name, exist_ok=exist_ok)

    def mkdir(self, path: Any, mode: int = 0o777) -> None:
        self._files.mkdir(path)

    def readlink(self, path: Any) -> str:
        return self._files.readlink(path)

    def remove(self, path: Any) -> None:
        self._files.remove(path)

    unlink = remove

    def rename(self, src: Any, dst: Any) -> None:
        self._files.rename(src, dst)

    replace = rename

    def rmdir(self, path: Any) -> None:
        self._files.rmdir(path)

    def scandir(self, path: Any = ".") -> _Scan:
        directory = os.fspath(path)
        shown = "" if directory == "." else directory
        return _Scan([DirEntry(self._files, shown, name) for name in self._files.list(directory)])

    def stat(self, path: Any, *, follow_symlinks: bool = True) -> os.stat_result:
        return stat_result(self._files, path, follow=follow_symlinks)

    def symlink(self, src: Any, dst: Any, target_is_directory: bool = False) -> None:
        self._files.symlink(src, dst)

    def truncate(self, path: Any, length: int) -> None:
        self._files.truncate(path, length)

    def utime(self, path: Any, times: Any = None, *, ns: Any = None, follow_symlinks: bool = True) -> None:
        if ns is not None:
            times = (ns[0] / 1e9, ns[1] / 1e9)
        self._files.utime(path, None if times is None else (float(times[0]), float(times[1])))

    def getenv(self, key: str, default: Any = None) -> Any:
        return self._environ.get(key, default)

    def get_exec_path(self, env: Any = None) -> list[str]:
        return []

    # -- descriptors -----------------------------------------------------------------------------

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        number = max(self._opened, default=2) + 1
        self._opened[number] = self._files.open(path, _mode(self._files, path, flags))
        return number

    def read(self, fd: int, n: int) -> bytes:
        data: bytes = self._of(fd).read(n)
        return data

    def write(self, fd: int, data: Any) -> int:
        return int(self._of(fd).write(data))

    def lseek(self, fd: int, offset: int, whence: int) -> int:
        return int(self._of(fd).seek(offset, whence))

    def close(self, fd: int) -> None:
        self._of(fd).close()
        del self._opened[fd]

    def _of(self, fd: int) -> Any:
        if fd not in self._opened:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._opened[fd]


_FUNCTIONS = tuple(name for name in vars(FileOs) if not name.startswith("_") and name != "members")

PUBLIC = (*_SAME, *_FUNCTIONS, "DirEntry", "environ", "removedirs", "renames", "walk")
"""The members that guest code gets."""


def plain_function(method: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Return a method as a function of a module, which has no ``__self__``."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    call.__name__ = call.__qualname__ = method.__name__
    call.__module__ = module
    return call


def _mode(files: GuardedFiles, path: Any, flags: int) -> str:
    """Return how the builtin opens what ``os.open`` opens with these flags."""
    there = files.exists(path)
    if flags & os.O_CREAT and flags & os.O_EXCL and there:
        raise failure(errno.EEXIST, os.fspath(path))
    if not flags & os.O_CREAT and not there:
        raise failure(errno.ENOENT, os.fspath(path))
    if not flags & (os.O_WRONLY | os.O_RDWR):
        return "rb"
    if flags & os.O_APPEND:
        return "a+b"
    return "w+b" if flags & os.O_TRUNC or not there else "r+b"


def composed(namespace: dict[str, Any]) -> Mapping[str, Callable[..., Any]]:
    """Return the functions that ``os`` builds from these: its own code, over *namespace*."""
    found = {}
    namespace["_walk_symlinks_as_files"] = getattr(os, "_walk_symlinks_as_files", None)  # a mark, of 3.13
    for name in ("_walk", "removedirs", "renames", "walk"):
        real = getattr(os, name, None)
        if isinstance(real, types.FunctionType):  # _walk is gone from 3.12 on
            made = types.FunctionType(real.__code__, namespace, name, real.__defaults__, real.__closure__)
            made.__kwdefaults__, made.__doc__ = real.__kwdefaults__, real.__doc__
            found[name] = made
    return found
