"""A cache in memory before another store."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from agex.state.commits.lru import Recent
from agex.state.kv.store import KVStore

if TYPE_CHECKING:
    from agex.state.commits.journal import Journal

__all__ = ["Cache"]


class Cache(KVStore):
    """Keep what was used last in memory, and everything in another store.

    What is kept in memory are the values and chunks that a state reads: they are named by their
    content and so never change. It keeps them checked, so that reading them again costs
    neither the store nor a digest. Branches are read from the store each time, and keys of
    your own too: what another process wrote is seen at once.

    Args:
        store: where everything is.
        max_bytes: how much is kept in memory.
    """

    def __init__(self, store: KVStore, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._store = store
        self._recent = Recent(max_bytes)

    def get(self, key: str) -> bytes | None:
        return self._store.get(key)

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        return self._store.get_many(keys)

    def set_many(self, items: Mapping[str, bytes]) -> None:
        self._store.set_many(items)

    def remove(self, key: str) -> None:
        self._store.remove(key)

    def remove_many(self, keys: Iterable[str]) -> None:
        self._store.remove_many(keys)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        return self._store.items(prefix)

    def keys(self, prefix: str = "") -> Iterator[str]:
        return self._store.keys(prefix)

    def __contains__(self, key: object) -> bool:
        return key in self._store

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        return self._store.cas(key, value, expected)

    def stage(
        self,
        items: Mapping[str, bytes],
        *,
        look: Collection[str] = (),
        then: Mapping[str, bytes] | None = None,
    ) -> dict[str, bytes]:
        return self._store.stage(items, look=look, then=then)

    def unstage(self, key: str) -> None:
        self._store.unstage(key)

    def journal(self, recent: Recent | None = None) -> Journal:
        return self._store.journal(recent or self._recent)

    def backup(self, path: str | os.PathLike[str]) -> None:
        self._store.backup(path)

    def close(self) -> None:
        self._store.close()

    def __repr__(self) -> str:
        return f"Cache({self._store!r})"
