"""A read-only directory as the workspace of code that runs in a worker."""

from __future__ import annotations

import posixpath
import stat
from typing import TYPE_CHECKING, Any, NoReturn

from agex.errors import SandboxError
from agex.files import FileTree, Workspace
from agex.files.file_tree import metadata
from agex.tinyagent.readonly_directory import Directory

if TYPE_CHECKING:
    from monkeyfs import FileMetadata

__all__ = ["ReadableFiles", "workspace_of"]


class ReadableFiles(FileTree):
    """The files of a directory: its root is ``/``, and its own path leads there too.

    Args:
        directory: whose files they are.
    """

    def __init__(self, directory: Directory) -> None:
        super().__init__()
        self._directory = directory

    def resolve_path(self, path: str) -> str:
        own = posixpath.abspath(self._directory.root)
        if path == own or path.startswith(f"{own}/"):
            path = "/" + path[len(own) :]
        inner = path.lstrip("/")
        if inner:
            self._directory.names(inner)  # refuses what leads up
        return super().resolve_path(path)

    realpath = resolve_path

    def stat(self, path: str) -> FileMetadata:
        resolved = self.resolve_path(path)
        found = self._directory.stat(_below(resolved))
        is_dir = stat.S_ISDIR(found.st_mode)
        if not is_dir and not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path!r} is not a plain file")
        size = 0 if is_dir else found.st_size
        return metadata(resolved, size, found.st_ctime, found.st_mtime, is_dir=is_dir)

    def list(self, path: str = ".", recursive: bool = False) -> list[str]:
        names = self._directory.list(_below(self.resolve_path(path)))
        if not recursive:
            return names
        found = []
        for name in names:
            found.append(name)
            below = posixpath.join(path, name)
            if self.isdir(below):
                found += [f"{name}/{inner}" for inner in self.list(below, recursive=True)]
        return sorted(found)

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        content = self._directory.read(_below(self.resolve_path(path)))
        return content[offset:] if size < 0 else content[offset : offset + size]

    def require_room(self, path: str, size: int) -> NoReturn:
        """Refuse to open a file for writing."""
        _refuse()

    def write(self, path: str, content: bytes, mode: str = "w") -> NoReturn:
        _refuse()

    def remove(self, path: str) -> NoReturn:
        _refuse()

    def rmdir(self, path: str) -> NoReturn:
        _refuse()

    def mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> NoReturn:
        _refuse()

    def rename(self, src: str, dst: str) -> NoReturn:
        _refuse()

    def utime(self, path: str, times: Any = None) -> NoReturn:
        _refuse()


def workspace_of(directory: Directory) -> Workspace:
    """Return the files of a directory as a workspace that can be read."""
    return Workspace(ReadableFiles(directory))


def _below(resolved: str) -> str:
    return resolved.lstrip("/") or "."


def _refuse() -> NoReturn:
    raise SandboxError("files can be read here, not written; use mode 'r' or 'rb'")
