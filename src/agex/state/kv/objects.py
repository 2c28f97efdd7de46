"""Content-addressed objects in a `KVStore`: what is read is what was written, or an error."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from agex.errors import StateCorrupt
from agex.state.commits.digests import Digest
from agex.state.commits.lru import Recent
from agex.state.kv.store import CONTENT, KVStore

__all__ = ["Objects", "chunk_key", "commit_key", "object_key"]

_BATCH = 1000  # objects of one request


class Objects:
    """The objects and chunks of a store."""

    def __init__(self, store: KVStore, digest: Digest, recent: Recent) -> None:
        self._store = store
        self._digest = digest
        self._recent = recent

    def get(self, digest: bytes) -> bytes:
        """Return an object.

        Raises:
            StateCorrupt: it is gone or damaged.
        """
        content = self._recent.get(digest)
        return self._checked(digest, self._store.get(object_key(digest))) if content is None else content

    def get_many(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """Return all of these objects.

        Raises:
            StateCorrupt: one is gone or damaged.
        """
        found: dict[bytes, bytes] = {}
        others = []
        for digest in digests:
            content = self._recent.get(digest)
            if content is None:
                others.append(digest)
            else:
                found[digest] = content
        for start in range(0, len(others), _BATCH):
            keys = {object_key(digest): digest for digest in others[start : start + _BATCH]}
            contents = self._store.get_many(keys)
            found |= {digest: self._checked(digest, contents.get(key)) for key, digest in keys.items()}
        return found

    def chunk(self, address: bytes) -> bytes:
        """Return a chunk.

        Raises:
            StateCorrupt: it is gone or damaged.
        """
        content = self._recent.get(address)
        if content is None:
            content = self._store.get(chunk_key(address))
            if content is None or self._digest.address(content) != address:
                raise _unusable(address, content)
            self._recent.add(address, content)
        return content

    def _checked(self, digest: bytes, content: bytes | None) -> bytes:
        if content is None or self._digest(content) != digest:
            raise _unusable(digest, content)
        self._recent.add(digest, content)
        return content

    def header(self, commit: str) -> bytes | None:
        """Return the header of a commit; None where there is none.

        Raises:
            StateCorrupt: it is damaged.
        """
        content = self._recent.get(commit.encode())
        if content is None:
            content = self._store.get(commit_key(commit))
            if content is not None:
                if self._digest(content).hex() != commit:
                    raise StateCorrupt(f"Commit {commit[:12]} is damaged.")
                self._recent.add(commit.encode(), content)
        return content

    def note(self, objects: Mapping[bytes, bytes], commit: str, header: bytes) -> None:
        """Hold what was written: the next commit is made of it."""
        for digest, content in objects.items():
            self._recent.add(digest, content)
        self._recent.add(commit.encode(), header)

    def forget(self) -> None:
        """Let go of what is held: it may be dropped from the store."""
        self._recent.clear()

    def missing(self, addresses: Collection[bytes]) -> set[bytes]:
        """Return those addresses that there is no chunk for."""
        return {address for address in addresses if chunk_key(address) not in self._store}


def commit_key(commit: str) -> str:
    """Return the key of a commit's header."""
    return f"{CONTENT}c/{commit}"


def object_key(digest: bytes) -> str:
    """Return the key of an object."""
    return f"{CONTENT}{digest.hex()}"


def chunk_key(address: bytes) -> str:
    """Return the key of a chunk."""
    return f"{CONTENT}k/{address.hex()}"


def _unusable(name: bytes, content: bytes | None) -> StateCorrupt:
    state = "gone" if content is None else "damaged"
    return StateCorrupt(f"The object {name.hex()} of the store is {state}.")
