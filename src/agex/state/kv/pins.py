"""How writers and a collector of garbage keep out of each other's way in a store that has only cas.

A writer first says what its commit will stand on (a pin), then looks what is being dropped; the
collector first says what it drops, then looks at the pins (Dekker's rule: of two that both say
before they look, at least one sees the other). So nothing is dropped under a commit, and a
writer waits for one slice of a collection at most.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from agex.errors import StateError
from agex.state.kv.store import KVStore, swap

__all__ = ["Pins"]

_PIN, _DOOMED = "agex/pin/", "agex/doomed"
_ABANDONED = 3600.0  # seconds after which a pin is of a writer that died; no commit takes that long
_STALLED = (
    10.0  # seconds without progress after which a collector is taken for dead; a slice takes milliseconds
)
_SHORT = 8  # bytes that stand for a key; two keys with the same ones only make the collector keep one more


class Pins:
    """The pins of a store."""

    def __init__(self, store: KVStore) -> None:
        self._store = store

    @contextmanager
    def hold(
        self, keys: Collection[str], *, look: Collection[str], write: Mapping[str, bytes] | None = None
    ) -> Iterator[dict[str, bytes]]:
        """Keep keys from the collector until the block ends, those that are yet to be written, too.

        Args:
            keys: what the collector must not drop.
            look: keys to read once nothing drops any of them.
            write: keys to set then.

        Yields:
            Those of *look* that have a value.
        """
        mine = set(map(_short, keys))
        pin = f"{_PIN}{uuid.uuid4().hex}"
        said = {pin: b"%d;" % time.time() + b"".join(mine)}
        try:
            found = self._store.stage(said, look=(_DOOMED, *look), then=write)
            notice = found.pop(_DOOMED, None)
            if notice is not None and not mine.isdisjoint(_shorts(notice[16:])):
                self._wait(mine)
                found = self._store.stage({}, look=look, then=write)  # it may have dropped what was written
            yield found
        finally:
            # The work of the block is done. A pin that stays is taken for abandoned after a while.
            with suppress(StateError):
                self._store.unstage(pin)

    @contextmanager
    def dooming(self, keys: Iterable[str]) -> Iterator[set[str]]:
        """Say that keys are going to be dropped; take back which of them may really be.

        Raises:
            StateError: another collector is at work.
        """
        doomed = {_short(key): key for key in keys}
        notice = uuid.uuid4().bytes + b"".join(doomed)
        if not swap(self._store, _DOOMED, notice, None)[0]:
            self._wait(None)  # for the slice of another collector, dead or alive
            if not swap(self._store, _DOOMED, notice, None)[0]:
                raise StateError("Another process is collecting this store's garbage; let it finish.")
        try:
            pinned = self._pinned()
            yield {key for short, key in doomed.items() if short not in pinned}
        finally:
            self._store.remove(_DOOMED)

    def _wait(self, mine: set[bytes] | None) -> None:
        """Wait until nothing of these is being dropped (None: until nothing is)."""
        first, deadline = None, 0.0
        while (notice := self._store.get(_DOOMED)) is not None:
            if mine is not None and mine.isdisjoint(_shorts(notice[16:])):
                return
            if notice != first:
                first, deadline = notice, time.monotonic() + _STALLED
            elif time.monotonic() > deadline:
                self._store.remove(_DOOMED)
                return
            time.sleep(0.002)

    def _pinned(self) -> set[bytes]:
        pinned: set[bytes] = set()
        for pin, value in self._store.items(_PIN):
            since, _, shorts = value.partition(b";")
            if int(since) < time.time() - _ABANDONED:
                self._store.remove(pin)
            else:
                pinned.update(_shorts(shorts))
        return pinned


def _short(key: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=_SHORT).digest()


def _shorts(packed: bytes) -> Iterator[bytes]:
    return (packed[at : at + _SHORT] for at in range(0, len(packed), _SHORT))
