"""A store in memory that hands every write on, in order, to something slower that survives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import Protocol

from agex.errors import StateError
from agex.state.kv.memory import Memory

__all__ = ["Kept", "MirroredStore"]


class Kept(Protocol):
    """Where writes are kept: each call wholly or not at all, in the order of the calls."""

    def write(self, items: Mapping[str, bytes], removed: Iterable[str]) -> Awaitable[None]:
        """Begin to write; what is returned ends when it is kept.

        Raises:
            OSError: at once or when awaited: it could not be.
        """
        ...

    def close(self) -> None: ...


class MirroredStore(Memory):
    """Answer from memory at once; every write begins to be kept at once, and ends later.

    What was written is kept when `flush` returns, not when `set` does: a tab that is closed in between
    loses the last writes, never some from the middle, so that no branch names a commit that is not there.
    Once a write fails, nothing more is written: every later one, and `flush`, raises ``StateError``.

    It is for one event loop; who opens it sees to it that nobody else writes (see ``IndexedDBStore``).

    Args:
        kept: where writes go.
        values: what is there.
    """

    def __init__(self, kept: Kept, values: Mapping[str, bytes]) -> None:
        super().__init__()
        self._values.update(values)
        self._kept = kept
        self._writing: set[asyncio.Future[None]] = set()
        self._failed: BaseException | None = None
        self._closed = False

    def set(self, key: str, value: bytes) -> None:
        self.set_many({key: value})

    def set_many(self, items: Mapping[str, bytes]) -> None:
        whole = {key: bytes(value) for key, value in items.items()}
        if whole:
            self._write(whole, ())
            self._values.update(whole)

    def remove(self, key: str) -> None:
        self.remove_many((key,))

    def remove_many(self, keys: Iterable[str]) -> None:
        gone = [key for key in dict.fromkeys(keys) if key in self._values]
        if gone:
            self._write({}, gone)
            for key in gone:
                del self._values[key]

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        if self._values.get(key) != expected:
            return False
        self.set(key, value)
        return True

    @property
    def unsaved(self) -> int:
        """How many writes are not known to be kept yet."""
        return len(self._writing)

    async def flush(self) -> None:
        """Wait until all that was written is kept.

        Raises:
            StateError: it could not be, or a write before it.
        """
        while self._writing:
            await asyncio.wait(set(self._writing))
        self._require_whole()

    def close(self) -> None:
        """Write nothing more; what was begun still ends. May be called again."""
        if not self._closed:
            self._closed = True
            self._kept.close()

    def _write(self, items: Mapping[str, bytes], removed: Iterable[str]) -> None:
        self._require_whole()
        if self._closed:
            raise StateError(f"{self!r} is closed; open it again.")
        try:
            begun = self._kept.write(items, removed)
        except OSError as error:
            self._failed = error
            raise self._unkept(error) from error
        writing = asyncio.ensure_future(begun)
        self._writing.add(writing)
        writing.add_done_callback(self._written)

    def _written(self, writing: asyncio.Future[None]) -> None:
        self._writing.discard(writing)
        error = asyncio.CancelledError() if writing.cancelled() else writing.exception()
        if error is not None and self._failed is None:
            self._failed = error

    def _require_whole(self) -> None:
        if self._failed is not None:
            raise self._unkept(self._failed) from self._failed

    def _unkept(self, why: BaseException) -> StateError:
        return StateError(
            f"{self!r} could not keep a write, so what is kept ends before it: {why}. "
            "Make room for the page's data, then reload."
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._values)} keys)"
