"""Leases: which worker carries on the runs of a branch, for how long, and when another one may.

A lease is a key of the store, written by compare-and-swap. Its holder renews it; each renewal changes the
value. Another worker takes it over after it has seen the value unchanged for as long as the lease says, by
its own clock: no two clocks are compared. A holder stops when that time has gone by since it *began* its
last renewal, so it stops first. (Gray and Cheriton, "Leases", 1989; the observer's side is that of
``client-go``'s leader election.)

A holder that was stopped in the middle of a call and does not know it yet is refused by its branch, which
the other worker has moved. So a lease saves work, and never decides whether a call counts.
"""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from agex.agent.durable.carriers import LeaseLost
from agex.errors import DefinitionError, StateConflict, StateError
from agex.state import Versioned
from agex.state.kv.store import KVStore, swap

__all__ = ["Lease", "Leases", "leased", "now", "require_seconds"]

SHORTEST = 0.2
"""Seconds. A renewal is a round trip to the store, and a third of this has to be enough for it."""
LONGEST = 86_400.0
"""Seconds, a day: a lost worker's runs wait as long as that."""
_PREFIX = "agex/lease/"
_SHARE = 3
"""A lease is renewed three times before it would end: two renewals may fail."""


def now() -> float:
    """Return the seconds of a clock that only goes forward, also while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)  # of Linux; others' monotonic clock does that itself
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def require_seconds(seconds: object) -> float:
    """Return the length of a lease.

    Raises:
        DefinitionError: it is none.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise DefinitionError(f"lease={seconds!r} is no length of time; give seconds, e.g. lease=30.0.")
    if not SHORTEST <= seconds <= LONGEST:
        raise DefinitionError(f"lease={seconds!r} is out of range; give {SHORTEST:g} to {LONGEST:g} seconds.")
    return float(seconds)


@dataclass(frozen=True)
class _Record:
    """A lease as the store has it."""

    owner: str
    """Empty once it was given back."""
    number: int
    """Of the renewal."""
    seconds: float

    def packed(self) -> bytes:
        return json.dumps([self.owner, self.number, self.seconds]).encode()

    @classmethod
    def read(cls, raw: bytes, otherwise: float) -> _Record:
        """Return the lease; one that is damaged is held by somebody unknown, for *otherwise* seconds."""
        try:
            owner, number, seconds = json.loads(raw)
        except (ValueError, TypeError, RecursionError):
            return cls("?", 0, otherwise)
        if type(owner) is not str or type(number) is not int or type(seconds) not in (int, float):
            return cls("?", 0, otherwise)
        if not (math.isfinite(seconds) and 0 < seconds <= LONGEST):
            return cls("?", 0, otherwise)
        return cls(owner, number, float(seconds))


class Lease:
    """A lease that this process holds, until it ends or is lost.

    Args:
        store: that has it.
        key: in the store.
        record: as it was written.
        since: when the write of it began.
    """

    def __init__(self, store: KVStore, key: str, record: _Record, since: float) -> None:
        self._store = store
        self._key = key
        self._record = record
        self._until = since + record.seconds
        self._taken = False
        self._lock = threading.Lock()

    @property
    def is_held(self) -> bool:
        """Whether no other worker can have it."""
        return not self._taken and now() < self._until

    def require(self) -> None:
        """Go on, or refuse.

        Raises:
            LeaseLost: it was not renewed in time, or another worker has it.
        """
        if not self.is_held:
            why = "another worker has it" if self._taken else "it was not renewed in time"
            branch = self._key.removeprefix(_PREFIX)
            raise LeaseLost(f"The lease of branch {branch!r} is lost, {why}: nothing more is begun here.")

    def renew(self) -> bool:
        """Renew it; return whether it is held then.

        A store that cannot be reached is asked again by the next call: the lease is held until its end.
        """
        with self._lock:
            if not self.is_held:
                return False
            begun = now()
            record = _Record(self._record.owner, self._record.number + 1, self._record.seconds)
            try:
                renewed, _ = swap(self._store, self._key, record.packed(), self._record.packed())
            except StateError:
                self._recover()
                return self.is_held
            if renewed:
                self._record, self._until = record, begun + record.seconds
            self._taken = not renewed
            return self.is_held

    def _recover(self) -> None:
        """Find out which renewal the store has, after one whose answer was lost."""
        with suppress(StateError):
            raw = self._store.get(self._key)
            held = None if raw is None else _Record.read(raw, self._record.seconds)
            if held is None or held.owner != self._record.owner:
                self._taken = True
            else:
                self._record = held

    def release(self) -> None:
        """Let others have it, if it is still held; a store that cannot be reached lets it end by itself."""
        with self._lock:
            if self._taken:
                return
            self._taken = True
            free = _Record("", self._record.number + 1, self._record.seconds)
            with suppress(StateError):
                swap(self._store, self._key, free.packed(), self._record.packed())

    @contextmanager
    def renewed(self, lost: Callable[[], object] = lambda: None) -> Iterator[Lease]:
        """Renew it in a thread until the block ends, then give it back.

        Args:
            lost: called, in that thread, when it is lost.
        """
        over = threading.Event()

        def work() -> None:
            while not over.wait(self._record.seconds / _SHARE):
                if not self.renew():
                    lost()
                    return

        thread = threading.Thread(target=work, name="agex lease", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()
            self.release()


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How the lease of a branch stands, as far as one worker has seen."""

    raw: bytes | None
    number: int
    holder: str | None = None
    """Who has it; None where it is free."""
    is_over: bool = False
    """Whether its holder is lost: it was not renewed in time."""
    is_alive: bool = False
    """Whether it was renewed since this worker looked last."""

    @property
    def is_held(self) -> bool:
        """Whether another worker may still carry on the branch."""
        return self.holder is not None and not self.is_over


class Leases:
    """The leases of a store as one worker sees and takes them.

    Args:
        store: that has them.
        seconds: how long each of its own lasts without a renewal.
    """

    def __init__(self, store: KVStore, seconds: float) -> None:
        self.owner = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self.seconds = require_seconds(seconds)
        self._store = store
        self._seen: dict[str, tuple[object, float]] = {}
        """By what is watched: how it looked, and since when."""

    def unchanged(self, name: str, look: object) -> float:
        """Return for how many seconds something has looked like this, as far as was seen here."""
        was = self._seen.get(name)
        if was is None or was[0] != look:
            self._seen[name] = was = (look, now())
        return now() - was[1]

    def look(self, branch: str) -> Standing:
        """Return how the lease of a branch stands now."""
        key = f"{_PREFIX}{branch}"
        raw = self._store.get(key)
        if raw is None:
            return Standing(raw=None, number=0)
        record = _Record.read(raw, self.seconds)
        before = self._seen.get(key)
        if not record.owner:
            return Standing(raw=raw, number=record.number)
        return Standing(
            raw=raw,
            number=record.number,
            holder=record.owner,
            is_over=self.unchanged(key, raw) >= record.seconds,
            is_alive=before is not None and before[0] != raw,
        )

    def take(self, branch: str) -> Lease | None:
        """Take the lease of a branch; None where another worker has it, or was faster."""
        standing = self.look(branch)
        if standing.is_held:
            return None
        key, since = f"{_PREFIX}{branch}", now()
        mine = _Record(self.owner, standing.number + 1, self.seconds)
        taken, _ = swap(self._store, key, mine.packed(), standing.raw)
        return Lease(self._store, key, mine, since) if taken else None


@contextmanager
def leased(state: Versioned, *, seconds: float = 30.0) -> Iterator[None]:
    """Keep the workers of a store from the runs of a state's branch while a program calls tasks itself.

    Args:
        state: on the branch.
        seconds: after which another process may go on, where this one was lost.

    Raises:
        StateConflict: a worker or another program holds the lease.
    """
    leases = Leases(state.store, seconds)
    lease = leases.take(state.branch)
    if lease is None:
        holder = leases.look(state.branch).holder or "a worker"
        raise StateConflict(
            f"Branch {state.branch!r} is carried on by {holder}: wait until its run is over, or give this "
            "one a branch of its own. The lease of a lost worker ends by itself."
        )
    with lease.renewed():
        yield
