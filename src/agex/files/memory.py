"""Files in memory, for a workspace that no state keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["MemorySpace"]


@dataclass(frozen=True, slots=True)
class _Entry:
    size: int
    created: float
    modified: float


class MemorySpace:
    """Files and directories by path; see `Space`."""

    def __init__(self) -> None:
        self.version = 0
        self._entries: dict[str, _Entry] = {}
        self._contents: dict[str, bytes] = {}

    @property
    def entries(self) -> Mapping[str, _Entry]:
        """Files and directories, without their bytes."""
        return self._entries

    def __getitem__(self, path: str) -> bytes:
        return self._contents[path]

    def __delitem__(self, path: str) -> None:
        del self._entries[path], self._contents[path]
        self.version += 1

    def put(self, path: str, content: bytes, *, created: float, modified: float) -> None:
        """Write a file, whole, or with a path that ends in a slash a directory."""
        self._entries[path] = _Entry(len(content), created, modified)
        self._contents[path] = content
        self.version += 1

    def move(self, old: str, new: str) -> None:
        """Give a file or directory another path."""
        self._entries[new] = self._entries.pop(old)
        self._contents[new] = self._contents.pop(old)
        self.version += 1

    def set_time(self, path: str, modified: float) -> None:
        """Say when a file was modified, in seconds since the epoch."""
        self._entries[path] = replace(self._entries[path], modified=modified)
        self.version += 1
