"""The interface of a store of commits. It keeps bytes: values are encoded before they come here.

A commit is a set of changes to named keys, on top of its parent. Each key holds a payload
of at most a few kilobytes; what is larger is cut into chunks, which payloads name by their
address, byte for byte: that is how a collector finds which chunks are needed. Two journals
stand behind this protocol: one of SQLite rows and a pack file for a directory, one for any
:class:`~agex.state.kv.store.KVStore`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Collected", "CommitInfo", "Draft", "HeadMoved", "Journal"]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A commit that is to be written."""

    parents: tuple[str, ...] = ()
    """The commit it stands on, and what it merges; empty for the first one."""
    changes: Mapping[str, bytes | None] = field(default_factory=dict)
    """The payload of each key that changed; None where a key is gone."""
    chunks: Mapping[bytes, bytes | memoryview] = field(default_factory=dict)
    """Chunks that the payloads name and the store may lack, by address."""
    events: Sequence[bytes] = ()
    time: float
    """Seconds since the epoch."""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class CommitInfo:
    """A commit as the history lists it."""

    hash: str
    parents: tuple[str, ...]
    time: float
    message: str
    events: int
    """How many events it holds."""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Counts of what a garbage collection removed."""

    commits: int
    chunks: int
    bytes: int
    branches: int = 0
    """Of conflicts, deleted before."""


class HeadMoved(Exception):
    """The branch is not where its writer left it. The caller decides what becomes of the draft."""

    def __init__(self, branch: str, head: str | None) -> None:
        super().__init__(branch, head)
        self.branch = branch
        self.head = head


class Journal(Protocol):
    """Commits, branches and chunks. Safe to share between threads; other processes may write beside it.

    A commit that is not there is a `StateError`, bytes that are not what they were are
    `StateCorrupt`: nothing is answered from them.
    """

    def commit(self, draft: Draft, *, branch: str, expect: str | None) -> str:
        """Write a commit and move *branch* from *expect* (None: it does not exist yet) to it, or do nothing.

        Returns:
            Its hash: over parents, changes, events, time and message.

        Raises:
            HeadMoved: the branch is elsewhere.
            StateConflict: a chunk that was there has been collected since; commit again, with it.
            StateFull: the store would pass its size limit, or the disk is full.
            StateError: a chunk is named by no payload.
        """
        ...

    def address(self, content: bytes | memoryview) -> bytes:
        """Return the address of a chunk: 32 bytes, known by their form, with a digest of its content."""
        ...

    def missing(self, addresses: Collection[bytes]) -> set[bytes]:
        """Return those of the addresses that the store has no chunk for."""
        ...

    def chunk(self, address: bytes) -> bytes:
        """Return a chunk, checked against its address."""
        ...

    def read(self, commit: str, key: str) -> bytes | None:
        """Return what a key holds at a commit; None where it holds nothing."""
        ...

    def read_all(self, commit: str, prefix: str = "") -> dict[str, bytes]:
        """Return every key with that prefix at a commit, and what it holds."""
        ...

    def keys(self, commit: str, prefix: str = "") -> list[str]:
        """Return the keys with that prefix at a commit, sorted."""
        ...

    def record(self, commit: str) -> CommitInfo:
        """Return the commit itself."""
        ...

    def history(self, commit: str) -> Iterator[CommitInfo]:
        """Yield the commit and those before it, newest first, by first parents."""
        ...

    def changes(self, commit: str) -> dict[str, bytes | None]:
        """Return what a commit changed against its first parent."""
        ...

    def diff(self, old: str | None, new: str) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Return the keys that differ between two commits, with both payloads; None is the empty state."""
        ...

    def events(self, commit: str) -> list[bytes]:
        """Return the events of one commit, in order."""
        ...

    def resolve(self, text: str) -> str:
        """Return the full hash for a branch, a tag, a hash or at least 6 characters of one.

        Raises:
            StateError: there is none, or more than one.
        """
        ...

    def branches(self) -> dict[str, str]:
        """Return the head of each branch."""
        ...

    def head(self, branch: str) -> str | None:
        """Return the head of one branch, without a look at the others; None where there is no such branch."""
        ...

    def move(self, branch: str, to: str | None, *, expect: str | None) -> None:
        """Point a branch at a commit, or with None delete it.

        Raises:
            HeadMoved: the branch is not at *expect*.
        """
        ...

    def tags(self) -> dict[str, str]:
        """Return the commit of each tag."""
        ...

    def tag(self, name: str, commit: str) -> None:
        """Name a commit for good.

        Raises:
            StateError: another commit has the name.
        """
        ...

    def untag(self, name: str) -> None:
        """Take a tag away.

        Raises:
            StateError: there is no such tag.
        """
        ...

    def fsck(self) -> list[str]:
        """Check everything against the hashes of the heads; return what is wrong, a line each."""
        ...

    def gc(self) -> Collected:
        """Drop what no branch and no tag reaches. A writer beside it waits for one commit's time at most."""
        ...

    def close(self) -> None:
        """Let go of files and connections; may be called again."""
        ...
