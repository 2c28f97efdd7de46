"""A record of the files that are changed through one view of a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agex.files.file_tree import FileTree, Names, Revision

if TYPE_CHECKING:
    from monkeyfs import FileMetadata

__all__ = ["Changes", "WatchedFiles"]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Files that came, changed and went, by path without the slash it begins with; each sorted."""

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


class WatchedFiles(FileTree):
    """The same files; it remembers what is changed through it, at the cost of what is changed."""

    def __init__(self, files: FileTree) -> None:
        super().__init__()
        self._files = files
        self._before: dict[str, bytes | None] = {}
        """The former bytes of each touched file, None for a new one; a digest of them would cost as much."""

    def max_bytes(self) -> int | None:
        return self._files.max_bytes()

    def revision(self) -> Revision:
        return self._files.revision()

    def stamps(self) -> dict[str, object]:
        return self._files.stamps()

    def stamp(self, path: str) -> object:
        return self._files.stamp(path)

    def take_changes(self) -> Changes:
        """Return what was changed since the last time."""
        before, self._before = self._before, {}
        added, modified, removed = [], [], []
        for path, old in sorted(before.items()):
            is_there = self._files.isfile(path)
            if old is None:
                added += [path] if is_there else []
            elif not is_there:
                removed.append(path)
            elif self._files.read(path) != old:
                modified.append(path)
        shown = ([path[1:] for path in paths] for paths in (added, modified, removed))
        return Changes(**dict(zip(("added", "modified", "removed"), map(tuple, shown), strict=True)))

    def _touch(self, path: str) -> str:
        resolved = self.resolve_path(path)
        if resolved not in self._before:
            self._before[resolved] = self._files.read(resolved) if self._files.isfile(resolved) else None
        return resolved

    def _touch_all(self, path: str) -> str:
        resolved = self.resolve_path(path)
        if not self._files.isdir(resolved):
            return self._touch(resolved)
        for below in self._files.list(resolved, recursive=True):
            if self._files.isfile(f"{resolved}/{below}"):
                self._touch(f"{resolved}/{below}")
        return resolved

    def write(self, path: str, content: bytes, mode: str = "w") -> None:
        self.writes += 1
        self._files.write(self._touch(path), content, mode)

    def remove(self, path: str) -> None:
        self.writes += 1
        self._files.remove(self._touch(path))

    def rename(self, src: str, dst: str) -> None:
        self.writes += 1
        old, new = self._touch_all(src), self.resolve_path(dst)
        if self._files.isdir(old):
            for below in self._files.list(old, recursive=True):
                self._touch(f"{new}/{below}")
        else:
            self._touch(new)
        self._files.rename(old, new)

    def stat(self, path: str) -> FileMetadata:
        return self._files.stat(self.resolve_path(path))

    def islink(self, path: str) -> bool:
        return self._files.islink(self.resolve_path(path))

    def list(self, path: str = ".", recursive: bool = False) -> Names:
        return self._files.list(self.resolve_path(path), recursive)

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        return self._files.read(self.resolve_path(path), offset, size)

    def require_room(self, path: str, size: int) -> None:
        """Raise ``OSError`` where a file of that size would pass the limit, if there is one."""
        require_room = getattr(self._files, "require_room", None)
        if require_room is not None:
            require_room(self.resolve_path(path), size)

    def rmdir(self, path: str) -> None:
        self.writes += 1
        self._files.rmdir(self.resolve_path(path))

    def mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> None:
        self.writes += 1
        self._files.mkdir(self.resolve_path(path), parents, exist_ok)

    def utime(self, path: str, times: tuple[float, float] | None = None) -> None:
        self.writes += 1
        self._files.utime(self.resolve_path(path), times)
