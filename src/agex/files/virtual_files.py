"""A workspace whose files are kept in a flat space: in memory, or in a state with its history."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from agex.files.file_tree import FileTree, Names, Revision, Space, failure, metadata
from agex.files.quota import exceeded

if TYPE_CHECKING:
    from monkeyfs import FileMetadata

__all__ = ["MemorySpace", "VirtualFiles"]

_MB = 1024 * 1024


class _Index:
    """Which names each directory has, so that a listing costs what it lists.

    One for each space, shared by everybody who looks at it.
    """

    def __init__(self, space: Space) -> None:
        self.lock = threading.RLock()
        self._seen = -1
        self.names: dict[str, dict[str, None]] = {"": {}}
        """Directory to names, without the slash that a path begins with."""
        self._size: int | None = None
        """Bytes of all files, once somebody asked."""

    def sync(self, space: Space) -> None:
        """Learn what others did to the space."""
        if self._seen == space.version:
            return
        self._seen = space.version
        self.names, self._size = {"": {}}, None
        for path in space.entries:
            if path.endswith("/"):
                self.add_directory(path[:-1])
            else:
                self.add(path)

    def moved_on(self, more: int = 0) -> None:
        """Take note of a change that this index knows already, and of the bytes that came with it."""
        self._seen += 1
        if self._size is not None:
            self._size += more

    def size(self, space: Space) -> int:
        """Return the bytes of all files. The first call reads their stored sizes."""
        if self._size is None:
            self._size = sum(entry.size for entry in space.entries.values())
        return self._size

    def add(self, path: str) -> None:
        """Take a file in."""
        parent, _, name = path.rpartition("/")
        self.add_directory(parent)
        self.names[parent][name] = None

    def add_directory(self, path: str) -> None:
        """Take a directory in."""
        while path not in self.names:
            self.names[path] = {}
            parent, _, name = path.rpartition("/")
            if parent in self.names:
                self.names[parent][name] = None
                return
            self.add_directory(parent)
            self.names[parent][name] = None

    def drop(self, path: str) -> None:
        """Let a file or an empty directory go."""
        parent, _, name = path.rpartition("/")
        self.names[parent].pop(name, None)
        self.names.pop(path, None)


_indexes: WeakKeyDictionary[Space, _Index] = WeakKeyDictionary()
_indexes_lock = threading.RLock()  # a collection may come with it held: see agex.sandbox.runtime.deadline


class VirtualFiles(FileTree):
    """Files in a space. Safe to share between threads; the working directory is this object's own.

    Args:
        space: where they are kept.
        max_size_mb: MiB of all files together; a write that would pass it raises ``OSError``, and
            everything that was there stays.
    """

    def __init__(self, space: Space, *, max_size_mb: float | None = None) -> None:
        super().__init__()
        self.space = space
        self._most = None if max_size_mb is None else int(max_size_mb * _MB)
        with _indexes_lock:
            self._index = _indexes.setdefault(space, _Index(space))

    def max_bytes(self) -> int | None:
        return self._most

    def revision(self) -> Revision:
        if isinstance(self.space, MemorySpace):
            return Revision(*self.space.lineage())
        return Revision(self.space, self.space.version)

    def stamps(self) -> dict[str, object]:
        with self._index.lock:
            return {path: self.space.stamp(path) for path in self.space.entries}

    def stamp(self, path: str) -> object:
        return self.space.stamp(path)

    # -- looking ---------------------------------------------------------------------------------

    def _key(self, path: str) -> str:
        self._index.sync(self.space)
        return self.resolve_path(path)[1:]

    def stat(self, path: str) -> FileMetadata:
        with self._index.lock:
            key = self._key(path)
            is_dir = key in self._index.names
            entry = self.space.entries.get(f"{key}/" if is_dir else key)
            if entry is not None:
                return metadata(f"/{key}", entry.size, entry.created, entry.modified, is_dir=is_dir)
            if is_dir:
                return metadata(f"/{key}", 0, 0.0, 0.0, is_dir=True)
            raise self._missing(key, path)

    def _missing(self, key: str, path: str) -> OSError:
        """Return why there is nothing: a file on the way, or nothing at all."""
        while key:
            key = key.rpartition("/")[0]
            if key in self.space.entries:
                return failure(errno.ENOTDIR, path)
        return failure(errno.ENOENT, path)

    def list(self, path: str = ".", recursive: bool = False) -> Names:
        with self._index.lock:
            key = self._key(path)
            if key not in self._index.names:
                raise (
                    failure(errno.ENOTDIR, path) if key in self.space.entries else self._missing(key, path)
                )
            return sorted(self._below(key)) if recursive else sorted(self._index.names[key])

    def _below(self, directory: str) -> Iterator[str]:
        """Yield the paths of all that is below a directory, from it on."""
        behind = [("", directory)]
        while behind:
            shown, key = behind.pop()
            for name in self._index.names[key]:
                yield shown + name
                below = f"{key}/{name}" if key else name
                if below in self._index.names:
                    behind.append((f"{shown}{name}/", below))

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        if offset < 0:
            raise ValueError(f"negative offset {offset}")
        with self._index.lock:
            key = self._key(path)
            if key in self._index.names:
                raise failure(errno.EISDIR, path)
            if key not in self.space.entries:
                raise self._missing(key, path)
            content = self.space[key]
        if offset == 0 and size < 0:
            return content
        return content[offset:] if size < 0 else content[offset : offset + size]

    # -- changing --------------------------------------------------------------------------------

    def require_room(self, path: str, size: int) -> None:
        """Raise ``OSError`` where a file of *size* bytes at *path* would pass the limit of the workspace."""
        if self._most is None:
            return
        with self._index.lock:
            key = self._key(path)
            old = self.space.entries.get(key)
            total = self._index.size(self.space) + size - (0 if old is None else old.size)
        if total > self._most:
            raise exceeded(path, total, self._most)

    def write(self, path: str, content: bytes, mode: str = "w") -> None:
        if mode not in ("w", "a"):
            raise ValueError(f"invalid mode: {mode!r}; give 'w' or 'a'")
        with self._index.lock:
            key = self._key(path)
            if key in self._index.names:
                raise failure(errno.EISDIR, path)
            old = self.space.entries.get(key)
            if mode == "a" and old is not None:
                content = self.space[key] + content
            self.require_room(path, len(content))
            if old is None:
                self._make_directories(key.rpartition("/")[0], path)
            now = time.time()
            self.space.put(key, bytes(content), created=now if old is None else old.created, modified=now)
            self._index.moved_on(len(content) - (0 if old is None else old.size))
            self._index.add(key)

    def _make_directories(self, key: str, path: str) -> None:
        missing = []
        while key not in self._index.names:
            if key in self.space.entries:
                raise failure(errno.ENOTDIR, path)
            missing.append(key)
            key = key.rpartition("/")[0]
        for each in reversed(missing):
            self._make_directory(each)

    def _make_directory(self, key: str) -> None:
        now = time.time()
        self.space.put(f"{key}/", b"", created=now, modified=now)
        self._index.moved_on()
        self._index.add_directory(key)

    def mkdir(self, path: str, parents: bool = False, exist_ok: bool = False) -> None:
        with self._index.lock:
            key = self._key(path)
            if key in self.space.entries or (key in self._index.names and not exist_ok):
                raise failure(errno.EEXIST, path)
            if key in self._index.names:
                return
            parent = key.rpartition("/")[0]
            if not parents and parent not in self._index.names:
                raise self._missing(key, path)
            self._make_directories(key, path)

    def remove(self, path: str) -> None:
        with self._index.lock:
            key = self._key(path)
            if key in self._index.names:
                raise failure(errno.EISDIR, path)
            entry = self.space.entries.get(key)
            if entry is None:
                raise self._missing(key, path)
            del self.space[key]
            self._index.moved_on(-entry.size)
            self._index.drop(key)

    def rmdir(self, path: str) -> None:
        with self._index.lock:
            key = self._key(path)
            if key not in self._index.names:
                raise (
                    failure(errno.ENOTDIR, path) if key in self.space.entries else self._missing(key, path)
                )
            if not key:
                raise failure(errno.EBUSY, path)
            if self._index.names[key]:
                raise failure(errno.ENOTEMPTY, path)
            if f"{key}/" in self.space.entries:
                del self.space[f"{key}/"]
                self._index.moved_on()
            self._index.drop(key)

    def rename(self, src: str, dst: str) -> None:
        with self._index.lock:
            old, new = self._key(src), self._key(dst)
            is_dir = old in self._index.names
            if not is_dir and old not in self.space.entries:
                raise self._missing(old, src)
            if old == new:
                return
            if not old or new.startswith(f"{old}/"):
                raise failure(errno.EINVAL, dst)
            if new.rpartition("/")[0] not in self._index.names:
                raise self._missing(new, dst)
            self._make_way(new, dst, for_directory=is_dir)
            paths = [(old, new)]
            if is_dir:
                paths = [(f"{old}/", f"{new}/")]
                for below in self._below(old):
                    slash = "/" if f"{old}/{below}" in self._index.names else ""
                    paths.append((f"{old}/{below}{slash}", f"{new}/{below}{slash}"))
            for before, after in paths:
                if before in self.space.entries:
                    self.space.move(before, after)
            self._index.sync(self.space)

    def _make_way(self, key: str, path: str, *, for_directory: bool) -> None:
        """Remove what a move is to replace, where POSIX lets it be replaced."""
        if key in self._index.names:
            if not for_directory:
                raise failure(errno.EISDIR, path)
            self.rmdir(f"/{key}")
        elif key in self.space.entries:
            if for_directory:
                raise failure(errno.ENOTDIR, path)
            self.remove(f"/{key}")

    def utime(self, path: str, times: tuple[float, float] | None = None) -> None:
        with self._index.lock:
            key = self._key(path)
            key = f"{key}/" if key in self._index.names else key
            if key not in self.space.entries:
                self.stat(path)
                return  # the root, which has no time
            self.space.set_time(key, time.time() if times is None else float(times[1]))
            self._index.moved_on()


@dataclass(frozen=True, slots=True)
class _Entry:
    size: int
    created: float
    modified: float


class MemorySpace:
    """Files and directories by path; see `Space`."""

    def __init__(self, copied: MemorySpace | None = None) -> None:
        self.version = 0
        self._origin: MemorySpace = self
        self._copied: int | None = 0
        self._entries: dict[str, _Entry] = {}
        self._contents: dict[str, bytes] = {}
        if copied is not None:
            self._origin, self._copied = copied.lineage()
            self._entries, self._contents = dict(copied._entries), dict(copied._contents)

    def lineage(self) -> tuple[MemorySpace, int | None]:
        """Return the space that this one was copied from and its version then, as long as nothing changed.

        A changed copy has a version of no other space, which its origin alone does not tell.
        """
        if self._origin is self:
            return self, self.version
        return self._origin, self._copied if self.version == 0 else None

    def stamp(self, path: str) -> object:
        """Return the bytes of a file, which are held anyway."""
        return self._contents[path]

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
        """Move a file or directory to another path."""
        self._entries[new] = self._entries.pop(old)
        self._contents[new] = self._contents.pop(old)
        self.version += 1

    def set_time(self, path: str, modified: float) -> None:
        """Say when a file was modified, in seconds since the epoch."""
        self._entries[path] = replace(self._entries[path], modified=modified)
        self.version += 1
