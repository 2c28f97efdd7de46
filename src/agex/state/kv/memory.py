"""A store in this process's memory: it ends with the process."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping

from agex.state.kv.store import KVStore

__all__ = ["Memory"]


class Memory(KVStore):
    """Keep everything in memory, for tests, notebooks and states that need not outlive the process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    def set(self, key: str, value: bytes) -> None:
        with self._lock:  # not between a cas's look and its writing
            self._values[key] = bytes(value)

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        found = ((key, self._values.get(key)) for key in keys)
        return {key: value for key, value in found if value is not None}

    def set_many(self, items: Mapping[str, bytes]) -> None:
        for key, value in items.items():
            self.set(key, value)

    def remove(self, key: str) -> None:
        with self._lock:
            self._values.pop(key, None)

    def remove_many(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.remove(key)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        with self._lock:
            return iter([item for item in self._values.items() if item[0].startswith(prefix)])

    def keys(self, prefix: str = "") -> Iterator[str]:
        with self._lock:
            return iter([key for key in self._values if key.startswith(prefix)])

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        with self._lock:
            if self._values.get(key) != expected:
                return False
            self._values[key] = bytes(value)
            return True

    def __repr__(self) -> str:
        return f"Memory({len(self._values)} keys)"
