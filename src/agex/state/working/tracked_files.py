"""The files of a branch: flat keys, their bytes, and their stored form.

A key is a path from the root, without the slash it begins with; a directory that was made for
itself is its path with a slash at the end. What was not touched costs nothing at a commit: its
key keeps the payload that it has. A payload is one record::

    payload = form, created, modified, size, "=", the bytes themselves   up to INLINE bytes
            | form, created, modified, size, ">", address for each block  above
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agex.errors import StateCorrupt, StateError
from agex.state.commits.digests import addresses_in
from agex.state.commits.length_prefixed import pack, unpack

if TYPE_CHECKING:
    from agex.state.commits.journal import Journal

__all__ = [
    "FileChange", "FileEntry", "FileSpace", "Files", "content_of", "entries_at", "entry_of", "path_of",
    "same_content",
]  # fmt: skip

INLINE = 4096  # bytes: as for variables, see values/base/recipe.py
BLOCK = 256 * 1024  # bytes: see values/base/group.py, whose import would cost a live state the codecs
_READ_ONE_BY_ONE = 50
_PREFIX = "f/"
_FORM = b"\x01"
_HERE, _CHUNKS = b"=", b">"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file or directory, without its bytes."""

    size: int
    created: float
    """Seconds since the epoch."""
    modified: float
    """Seconds since the epoch."""
    stored: bytes | None = None
    """The payload, where one is in the store."""


@dataclass
class FileChange:
    """The part of a commit that concerns files."""

    payloads: dict[str, bytes | None] = field(default_factory=dict)
    chunks: dict[bytes, memoryview] = field(default_factory=dict)
    entries: dict[str, FileEntry] = field(default_factory=dict)
    """Entries as they will be stored, by path."""
    gone: frozenset[str] = frozenset()
    contents: dict[str, bytes] = field(default_factory=dict)
    """The bytes that were written, by path: these very objects."""


def path_of(key: str) -> str | None:
    """Return the path that a key of the journal is of; None for a key of something else."""
    return key.removeprefix(_PREFIX) if key.startswith(_PREFIX) else None


def same_content(one: bytes | None, other: bytes | None) -> bool:
    """Return whether two payloads hold the same bytes, whenever they were written."""
    if one is None or other is None:
        return one is other
    return unpack(one)[3:] == unpack(other)[3:]


def entries_at(journal: Journal, commit: str | None) -> dict[str, FileEntry]:
    """Return the files and directories at a commit, by path."""
    found = {} if commit is None else journal.read_all(commit, _PREFIX)
    return {
        key.removeprefix(_PREFIX): entry_of(key.removeprefix(_PREFIX), payload)
        for key, payload in found.items()
    }


class _Entries(MutableMapping[str, FileEntry]):
    """Files and directories by path, on top of a commit.

    A listing needs the paths alone, and those of a commit cost a third of what they hold. What is stored of
    a path is read when somebody asks for it; where many are asked for, of all at once.
    """

    def __init__(self, journal: Journal | None, commit: str | None) -> None:
        self._journal = journal
        self.commit = commit
        """A commit that what is not read yet is the same at."""
        self._found: dict[str, FileEntry | None] = {}
        if commit is not None:
            assert journal is not None, "only a space of a journal has a commit"
            self._found = {key.removeprefix(_PREFIX): None for key in journal.keys(commit, _PREFIX)}
        self._read = 0

    def __getitem__(self, path: str) -> FileEntry:
        entry = self._found[path]
        if entry is None:
            self._read += 1
            if self._read > max(_READ_ONE_BY_ONE, len(self._found) // 50):
                self._read_all()
            entry = self._found[path] or self._read_one(path)
        return entry

    def _read_one(self, path: str) -> FileEntry:
        assert self._journal is not None, "what is not read yet is in a journal"
        payload = self._journal.read(self.commit or "", _PREFIX + path)
        if payload is None:
            raise StateCorrupt(f"What the store holds of file {path!r} is gone.")
        entry = self._found[path] = entry_of(path, payload)
        return entry

    def _read_all(self) -> None:
        assert self._journal is not None, "what is not read yet is in a journal"
        for path, entry in entries_at(self._journal, self.commit).items():
            if path in self._found and self._found[path] is None:
                self._found[path] = entry

    def __setitem__(self, path: str, entry: FileEntry) -> None:
        self._found[path] = entry

    def __delitem__(self, path: str) -> None:
        del self._found[path]

    def __contains__(self, path: object) -> bool:
        return path in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class FileSpace(MutableMapping[str, bytes]):
    """Files by path, on top of a commit or in memory only. Safe to share between threads.

    As a mapping it holds the files and their bytes; directories are among the `entries` only.

    Args:
        journal: where they are stored; None for nowhere.
        commit: what they start from; None for nothing.

    Attributes:
        version: grows with every change, so that a reader sees whether what it knows is of now.
    """

    def __init__(self, journal: Journal | None = None, commit: str | None = None) -> None:
        self._journal = journal
        self._lock = threading.RLock()
        self.version = 0
        self._point_at(commit)

    def _point_at(self, commit: str | None) -> None:
        self._commit = commit
        self._known: _Entries | None = None
        self._fresh: dict[str, bytes] = {}
        """Bytes written since the commit."""
        self._touched: set[str] = set()
        """Paths whose payload is to be written though their bytes are stored: moved, or of another time."""
        self._gone: set[str] = set()

    def reset(self, commit: str | None) -> None:
        """Be what a commit holds; what was not committed is dropped."""
        with self._lock:
            self.version += 1
            self._point_at(commit)

    # -- reading -----------------------------------------------------------------------------

    @property
    def entries(self) -> Mapping[str, FileEntry]:
        """Files and directories, by path. Their paths are read once from the store; then kept."""
        return self._know()

    def __getitem__(self, path: str) -> bytes:
        with self._lock:
            key = _key(path)
            if key in self._fresh:
                return self._fresh[key]
            payload = self.entries[key].stored
        if payload is None:
            raise KeyError(path)  # a directory of this session
        return content_of(self._journal, key, payload)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and _is_file(_key(path)) and _key(path) in self.entries

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(sorted(filter(_is_file, self.entries)))

    def __len__(self) -> int:
        with self._lock:
            return sum(map(_is_file, self.entries))

    # It is where files are, not a value: two spaces with the same files are two.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"FileSpace({len(self)} files)"

    # -- writing -----------------------------------------------------------------------------

    def __setitem__(self, path: str, content: bytes) -> None:
        parts = _key(path).split("/")
        if not all(parts) or {".", ".."} & set(parts):
            raise StateError(f"{path!r} is no path of a file; write state.files['directory/name.txt'].")
        now = time.time()
        with self._lock:
            old = self.entries.get(_key(path))
            self.put(_key(path), content, created=now if old is None else old.created, modified=now)

    def put(self, path: str, content: bytes, *, created: float, modified: float) -> None:
        """Write a file, whole, or with a path that ends in a slash a directory."""
        with self._lock:
            self._know()[path] = FileEntry(len(content), created, modified)
            self._fresh[path] = content
            self._touched.discard(path)
            self._gone.discard(path)
            self.version += 1

    def move(self, old: str, new: str) -> None:
        """Move a file or directory to a free path; its bytes are not read."""
        with self._lock:
            entry = self._know()[old]
            content = self._fresh.get(old)
            del self[old]
            self._put_back(new, entry, content)

    def set_time(self, path: str, modified: float) -> None:
        """Say when a file was modified, in seconds since the epoch; its bytes are not read."""
        with self._lock:
            entry = replace(self._know()[path], modified=modified)
            if entry.stored is not None:
                form, created, _, *rest = unpack(entry.stored)
                entry = replace(entry, stored=pack(form, created, _micros(modified), *rest))
            self._put_back(path, entry, self._fresh.get(path))

    def stamp(self, path: str) -> object:
        """Return what the store holds of a path, with the addresses of its bytes, or the bytes themselves."""
        with self._lock:
            stored = self.entries[path].stored
            return ("bytes", self._fresh[path]) if path in self._fresh else ("stored", stored)

    def _put_back(self, path: str, entry: FileEntry, content: bytes | None) -> None:
        self._know()[path] = entry
        self._gone.discard(path)
        if content is None:
            self._touched.add(path)
        else:
            self._fresh[path] = content
        self.version += 1

    def _know(self) -> _Entries:
        """Return the entries, to be changed."""
        with self._lock:
            if self._known is None:
                self._known = _Entries(self._journal, self._commit)
            return self._known

    def __delitem__(self, path: str) -> None:
        key = _key(path)
        with self._lock:
            if key not in self.entries:
                raise KeyError(path)
            del self._know()[key]
            self._fresh.pop(key, None)
            self._touched.discard(key)
            self._gone.add(key)
            self.version += 1

    # -- commits -----------------------------------------------------------------------------

    def change(self) -> FileChange:
        """Find what changed since the commit."""
        change = FileChange()
        with self._lock:
            journal = self._journal
            assert journal is not None, "only files of a journal are committed"
            for path, content in self._fresh.items():
                entry = self.entries[path]
                change.contents[path] = content
                payload = _payload(journal, entry, content, change.chunks)
                change.payloads[_PREFIX + path] = payload
                change.entries[path] = FileEntry(entry.size, entry.created, entry.modified, payload)
            for path in self._touched:
                entry = change.entries[path] = self.entries[path]
                change.payloads[_PREFIX + path] = entry.stored
            stored = set() if self._commit is None or not self._gone else self._gone
            for path in stored:
                if journal.read(self._commit or "", _PREFIX + path) is not None:
                    change.payloads[_PREFIX + path] = None
            change.gone = frozenset(self._gone)
        return change

    def committed(self, commit: str, change: FileChange) -> None:
        """Take note that a change was written; what was written meanwhile stays to be committed."""
        with self._lock:
            self._commit = commit
            for path, entry in change.entries.items():
                now = self.entries.get(path)
                # Two versions may have the same time, where the clock is coarse.
                is_same = self._fresh.get(path) is change.contents.get(path)
                if now is not None and is_same and (now.size, now.created, now.modified) == _version(entry):
                    self._know()[path] = entry
                    self._fresh.pop(path, None)
                    self._touched.discard(path)
            if self._known is not None:
                self._known.commit = commit
            self._gone -= change.gone

    @property
    def is_changed(self) -> bool:
        """Whether something was written or removed since the commit."""
        return bool(self._fresh or self._touched or self._gone)


def _version(entry: FileEntry) -> tuple[int, float, float]:
    """Return the version of a file: its size and times, without its bytes."""
    return entry.size, entry.created, entry.modified


class Files(Mapping[str, bytes]):
    """The files at a commit; read-only. A path may begin with a slash or not."""

    def __init__(self, journal: Journal, commit: str) -> None:
        self._space = FileSpace(journal, commit)

    def __getitem__(self, path: str) -> bytes:
        if path not in self._space:
            raise KeyError(path)
        return self._space[path]

    def __contains__(self, path: object) -> bool:
        return path in self._space

    def __iter__(self) -> Iterator[str]:
        return iter(self._space)

    def __len__(self) -> int:
        return len(self._space)

    @property
    def entries(self) -> Mapping[str, FileEntry]:
        """Files and directories, by path, without their bytes."""
        return self._space.entries

    def __repr__(self) -> str:
        return f"Files({', '.join(self)})"


def _key(path: str) -> str:
    return path.lstrip("/")


def _is_file(path: str) -> bool:
    return not path.endswith("/")


def _micros(seconds: float) -> bytes:
    return int(seconds * 1e6).to_bytes(8, "big", signed=True)


def _payload(journal: Journal, entry: FileEntry, content: bytes, chunks: dict[bytes, memoryview]) -> bytes:
    """Return the payload of a file, and add to *chunks* those that it names."""
    head = (_FORM, _micros(entry.created), _micros(entry.modified))
    size = entry.size.to_bytes(8, "big")
    # Bytes that look like an address would be taken for one by a collector.
    if entry.size <= INLINE and not addresses_in(content):
        return pack(*head, size, _HERE, content)
    view = memoryview(content)
    blocks = [view[start : start + BLOCK] for start in range(0, entry.size, BLOCK)]
    addresses = [journal.address(block) for block in blocks]
    chunks.update(zip(addresses, blocks, strict=True))
    return pack(*head, size, _CHUNKS, *addresses)


def entry_of(path: str, payload: bytes) -> FileEntry:
    """Return the entry of a file, read from its payload, without its bytes."""
    fields = unpack(payload)
    if len(fields) < 5 or fields[0] != _FORM:
        raise StateCorrupt(f"The payload of file {path!r} is of no known kind")
    created, modified = (int.from_bytes(field, "big", signed=True) for field in fields[1:3])
    return FileEntry(int.from_bytes(fields[3], "big"), created / 1e6, modified / 1e6, payload)


def content_of(journal: Journal | None, path: str, payload: bytes) -> bytes:
    """Return the bytes of a file."""
    size, kind, *parts = unpack(payload)[3:]
    if kind == _HERE:
        content = parts[0]
    else:
        assert journal is not None, "what is stored in chunks has a journal"
        content = b"".join(map(journal.chunk, parts))
    if len(content) != int.from_bytes(size, "big"):
        raise StateCorrupt(f"File {path!r} is not as long as it was")
    return content
