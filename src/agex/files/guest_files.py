"""A workspace as guest code has it: arguments are made plain before the host works with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from agex.files.file_tree import FileTree, Infos, Names
from agex.files.open_file import OpenFile, open_file

if TYPE_CHECKING:
    from monkeyfs import FileMetadata

__all__ = ["GuardedFiles", "Outside"]

Outside: TypeAlias = Callable[..., Any]
"""Calls a function outside the guards of guest code: it touches the files themselves."""


class GuardedFiles:
    """The same files. Arguments from guest code are made plain first, still under the guards.

    Otherwise a method of a guest class, of a path or of a buffer, would run with the powers of the host.
    """

    kinds = (OpenFile,)
    """Types of the files that `open` gives, beside ``io.TextIOWrapper``."""

    def __init__(self, files: FileTree, outside: Outside) -> None:
        self._files = files
        self._outside = outside

    def _do(self, name: str, *args: Any) -> Any:
        plain = [_plain(arg) for arg in args]
        return self._outside(getattr(self._files, name), *plain)

    def open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """Open a file like the builtin ``open``."""
        return open_file(self, _plain(file), str.__str__(mode), *args, **kwargs)

    def stat(self, path: str) -> FileMetadata:
        found: FileMetadata = self._do("stat", path)
        return found

    def exists(self, path: str) -> bool:
        return bool(self._do("exists", path))

    def lexists(self, path: str) -> bool:
        return bool(self._do("lexists", path))

    def isfile(self, path: str) -> bool:
        return bool(self._do("isfile", path))

    def isdir(self, path: str) -> bool:
        return bool(self._do("isdir", path))

    def islink(self, path: str) -> bool:
        return bool(self._do("islink", path))

    def list(self, path: str = ".", recursive: bool = False) -> Names:
        found: Names = self._do("list", path, recursive)
        return found

    def list_detailed(self, path: str = ".", recursive: bool = False) -> Infos:
        found: Infos = self._do("list_detailed", path, recursive)
        return found

    def glob(self, pattern: str) -> Names:
        found: Names = self._do("glob", pattern)
        return found

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        found: bytes = self._do("read", path, offset, size)
        return found

    def write(self, path: str, content: Any, mode: str = "w") -> None:
        self._do("write", path, content, mode)

    def require_room(self, path: str, size: int) -> None:
        """Raise ``OSError`` where a file of that size would pass the limit, if there is one."""
        if hasattr(self._files, "require_room"):
            self._do("require_room", path, size)

    def remove(self, path: str) -> None:
        self._do("remove", path)

    def rmdir(self, path: str) -> None:
        self._do("rmdir", path)

    def mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> None:
        self._do("mkdir", path, parents, exist_ok)

    def makedirs(self, path: str, exist_ok: bool = True) -> None:
        self._do("makedirs", path, exist_ok)

    def rename(self, src: str, dst: str) -> None:
        self._do("rename", src, dst)

    def replace(self, src: str, dst: str) -> None:
        self._do("replace", src, dst)

    def truncate(self, path: str, length: int) -> None:
        self._do("truncate", path, length)

    def utime(self, path: str, times: tuple[float, float] | None = None) -> None:
        self._do("utime", path, None if times is None else (float(times[0]), float(times[1])))

    def chmod(self, path: str, mode: int) -> None:
        self._do("chmod", path, mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        self._do("chown", path, uid, gid)

    def access(self, path: str, mode: int) -> bool:
        return bool(self._do("access", path, mode))

    def getsize(self, path: str) -> int:
        return int(self._do("getsize", path))

    def samefile(self, path1: str, path2: str) -> bool:
        return bool(self._do("samefile", path1, path2))

    def symlink(self, src: str, dst: str) -> None:
        self._do("symlink", src, dst)

    def link(self, src: str, dst: str) -> None:
        self._do("link", src, dst)

    def readlink(self, path: str) -> str:
        return str(self._do("readlink", path))

    def getcwd(self) -> str:
        return str(self._do("getcwd"))

    def chdir(self, path: str) -> None:
        self._do("chdir", path)

    def resolve_path(self, path: str) -> str:
        return str(self._do("resolve_path", path))

    realpath = resolve_path


def _plain(value: Any) -> Any:
    """Return a copy of an argument without guest code.

    Raises:
        TypeError: it is nothing that a method of a file system takes.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or type(value) in (bool, int, float, bytes):
        return value
    if isinstance(value, int):
        return int.__index__(value)
    if type(value) is tuple and all(type(each) is float for each in value):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(memoryview(value))
    if hasattr(type(value), "__fspath__"):
        path: object = os.fspath(value)  # pyright: ignore[reportArgumentType, reportCallIssue] - asked just now
        if isinstance(path, str):
            return str.__str__(path)
    raise TypeError(f"a path of the workspace is text, not {type(value).__name__}")
