"""A workspace with other file trees mounted into it, read only."""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agex.files.file_tree import FileTree, Names, Revision, failure, metadata

if TYPE_CHECKING:
    from monkeyfs import FileMetadata

__all__ = ["MountedFiles"]


class MountedFiles(FileTree):
    """The files of *base*, and below each mount point those of another tree, which nobody can change.

    Args:
        base: the workspace.
        mounts: the trees to mount, by absolute path. Files of *base* below it are hidden.
    """

    def __init__(self, base: FileTree, mounts: Mapping[str, FileTree]) -> None:
        super().__init__()
        self._base = base
        self._mounts = dict(mounts)

    def _at(self, path: str) -> tuple[FileTree, str]:
        """Return the tree that a path leads into, and the path there."""
        resolved = self.resolve_path(path)
        for point, tree in self._mounts.items():
            if resolved == point or resolved.startswith(f"{point}/"):
                return tree, resolved[len(point) :] or "/"
        return self._base, resolved

    def _own(self, path: str) -> str:
        """Return the path in the workspace itself; the rest is read only."""
        tree, inner = self._at(path)
        if tree is not self._base or (inner != "/" and self._children(inner)):
            raise failure(errno.EROFS, path)
        return inner

    def _children(self, directory: str) -> set[str]:
        """Return the names in a directory that lead to mount points."""
        start = directory.rstrip("/") + "/"
        return {point[len(start) :].split("/")[0] for point in self._mounts if point.startswith(start)}

    def max_bytes(self) -> int | None:
        return self._base.max_bytes()

    def revision(self) -> Revision:
        own = self._base.revision()
        return Revision(own.origin, own.version, (*own.mounts, *self._mounts.items()))

    def stamps(self) -> dict[str, object]:
        points = [f"{point[1:]}/" for point in self._mounts]
        found = {
            path: stamp
            for path, stamp in self._base.stamps().items()
            if not any(path.startswith(point) for point in points)
        }
        for point, tree in self._mounts.items():
            names = point[1:].split("/")
            found |= {"/".join(names[:depth]) + "/": None for depth in range(1, len(names) + 1)}
            found |= {f"{point[1:]}/{path}": stamp for path, stamp in tree.stamps().items()}
        return found

    def stamp(self, path: str) -> object:
        tree, inner = self._at(f"/{path}")
        return tree.stamp(inner[1:])

    def stat(self, path: str) -> FileMetadata:
        tree, inner = self._at(path)
        if tree is self._base and self._children(inner) and not tree.exists(inner):
            return metadata(inner, 0, 0.0, 0.0, is_dir=True)
        return tree.stat(inner)

    def islink(self, path: str) -> bool:
        tree, inner = self._at(path)
        return tree.islink(inner)

    def list(self, path: str = ".", recursive: bool = False) -> Names:
        tree, inner = self._at(path)
        mounted = self._children(inner) if tree is self._base else set()
        found = [] if mounted and not tree.exists(inner) else tree.list(inner, recursive)
        names = {name for name in found if name.split("/")[0] not in mounted} | mounted
        if recursive:
            for name in mounted:
                below = posixpath.join(inner, name)
                names |= {f"{name}/{each}" for each in self.list(below, recursive=True)}
        return sorted(names)

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        tree, inner = self._at(path)
        return tree.read(inner, offset, size)

    def require_room(self, path: str, size: int) -> None:
        """Raise ``OSError`` where a file of that size would pass the limit, if there is one."""
        own = self._own(path)
        require_room = getattr(self._base, "require_room", None)
        if require_room is not None:
            require_room(own, size)

    def write(self, path: str, content: bytes, mode: str = "w") -> None:
        self._base.write(self._own(path), content, mode)

    def remove(self, path: str) -> None:
        self._base.remove(self._own(path))

    def rmdir(self, path: str) -> None:
        self._base.rmdir(self._own(path))

    def mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> None:
        if exist_ok and self.isdir(path):
            return
        self._base.mkdir(self._own(path), parents, exist_ok)

    def rename(self, src: str, dst: str) -> None:
        self._base.rename(self._own(src), self._own(dst))

    def utime(self, path: str, times: tuple[float, float] | None = None) -> None:
        self._base.utime(self._own(path), times)
