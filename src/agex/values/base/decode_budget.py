"""Budget of one decode, in memory and in work, that its bytes pay for.

A few bytes can ask for a lot: a range of 700 million numbers made into a column, one text that is copied
a thousand times, ten thousand keys of one hash. So each group has one account, from which constructors pay
before they make anything, whatever library they belong to. It stands in a variable of the thread:
constructors are plain functions that the unpickler calls.

Two accounts are kept:

* bytes, counted before they are allocated. A call into a library is counted in bytes, too (see `CALL`);
* processor time of hashing, which is unknown beforehand: equal hashes, and those that collide in a table,
  cost the square of their number. The time is looked at after every few hundred keys (see `Clock`).
"""

from __future__ import annotations

import gc
import io
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from agex.errors import StateCorrupt

__all__ = [
    "BYTES_A_BYTE",
    "CALL",
    "SMALL_CALL",
    "Budget",
    "Clock",
    "Metered",
    "current",
    "enough_for",
    "file_of",
    "put_in",
    "size_of",
    "spend",
    "unpaid",
]

_FACTOR = 48
"""Bytes of memory for each byte of a group."""
BYTES_A_BYTE = 16
"""Memory that the values of a stream take, for each of its bytes."""
_FLOOR = 8 << 20
"""Bytes that any group may take: a few large constants, the state of a library."""
CALL = 1024
"""Cost of a call that makes a table or a column, some 100 microseconds; a series has 60 bytes."""
SMALL_CALL = 256
"""Cost of a call that makes a number or an array, some 5 microseconds; the shortest has 18 bytes."""

_SECONDS = 0.15
_SECONDS_A_BYTE = 3e-7
"""Processor time that hashing may take; it takes a tenth of the second where hashes are distinct."""


class Clock:
    """The processor time of hashing in one load, in spells of a few hundred keys.

    Of spells into which a collection of garbage fell, the longest does not count. A cost that grows with the
    square of the keys shows in all of them.
    """

    def __init__(self, paid: int) -> None:
        self._left = _SECONDS + _SECONDS_A_BYTE * paid
        self._longest = 0.0
        self._collections = _collections()
        self._since = self._stopped = time.thread_time()

    def tick(self) -> None:
        """End a spell, and begin another.

        Raises:
            StateCorrupt: hashing takes longer than the bytes pay for.
        """
        now = time.thread_time()
        spell = now - self._since
        if (collections := _collections()) == self._collections:
            self._left -= spell
        else:
            self._left -= min(self._longest, spell)
            self._longest = max(self._longest, spell)
            self._collections = collections
        self._since = time.thread_time()
        if self._left < 0:
            raise StateCorrupt("a stored value has keys that take too long to tell apart")

    def begin(self) -> None:
        """Begin a spell: the time before is not counted, or was counted already."""
        self._since = time.thread_time()

    def __enter__(self) -> None:
        """Stop while a library works, or a class is made."""
        self._stopped = time.thread_time()

    def __exit__(self, *error: object) -> None:
        self._since += time.thread_time() - self._stopped


def _collections() -> int:
    """Return how often the oldest generation was collected, which takes as long as there are objects."""
    return int(gc.get_stats()[2]["collections"])


class Pieces:
    """The file of a stream in pieces.

    Args:
        stream: opcodes without frames, which the unpickler would read as wholes.
    """

    piece = 1 << 16

    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self._at = 0

    def read(self, size: int) -> bytes:
        found = self._stream[self._at : self._at + size]
        self._at += len(found)
        return found

    def peek(self, _size: int) -> bytes:
        return self._stream[self._at : self._at + self.piece]

    def readline(self) -> bytes:
        """Return nothing: no opcode that may be used reads a line."""
        return b""


class Metered(Pieces):
    """The file of a stream in pieces of some hundred keys, with a look at the clock before each."""

    piece = 1024

    def __init__(self, stream: bytes, clock: Clock) -> None:
        super().__init__(stream)
        self._clock = clock

    def peek(self, size: int) -> bytes:
        self._clock.tick()
        return super().peek(size)


def file_of(stream: bytes, clock: Clock | None) -> Any:
    """Return the file that a stream without frames is loaded from: in one frame, or by a clock."""
    if clock is not None:
        return Metered(stream, clock)
    if len(stream) > _FRAME:
        return Pieces(stream)
    return io.BytesIO(b"%b\x95%b%b" % (stream[:2], (len(stream) - 2).to_bytes(8, "little"), stream[2:]))


_FRAME = 1 << 16


_UNWATCHED = nullcontext()


class Budget:
    """The account of one decode.

    Args:
        paid: bytes of the group.
    """

    def __init__(self, paid: int) -> None:
        self.left = _FLOOR + _FACTOR * paid
        self.paid = paid
        self.clock: Clock | None = None
        """The clock of a load whose keys are watched."""

    def watched(self) -> Clock:
        """Return the clock; from now on, hashing is counted."""
        if self.clock is None:
            self.clock = Clock(self.paid)
        return self.clock

    def stopped(self) -> AbstractContextManager[None]:
        """Count no time for the length of a block."""
        return self.clock or _UNWATCHED

    def spend(self, size: int) -> None:
        """Pay for bytes before they are allocated.

        Raises:
            StateCorrupt: the group does not have so many to spend.
        """
        self.left -= size
        if self.left < 0:
            raise StateCorrupt("a stored value would take more memory than its bytes pay for")


def unpaid(size: int, cost: int) -> int:
    """Return the number of bytes that a group of some size lacks to pay for its cost."""
    return max(0, -(-(cost - _FLOOR // 2) // _FACTOR) - size)


class _Open(threading.local):
    """The account of this thread's decode: also for guest code that it runs in a context of its own."""

    budget: Budget | None = None


_OPEN = _Open()


class enough_for:  # noqa: N801 - it is called as a function is
    """Open the account of one decode."""

    def __init__(self, paid: int) -> None:
        self._budget = Budget(paid)

    def __enter__(self) -> Budget:
        self._outer, _OPEN.budget = _OPEN.budget, self._budget
        return self._budget

    def __exit__(self, *error: object) -> None:
        _OPEN.budget = self._outer


def current() -> Budget:
    """Return the account of this decode; outside of one, an account with the minimum of any group."""
    return _OPEN.budget or Budget(0)


def spend(size: int) -> None:
    """Pay for bytes before they are allocated; see `Budget.spend`."""
    current().spend(size)


def put_in(put: Callable[[list[Any]], Any], items: list[Any]) -> None:
    """Put items into a container, some hundred at a time, with a look at the clock after each."""
    if len(items) <= _AT_ONCE:
        put(items)
        return
    clock = current().watched()
    clock.begin()
    for start in range(0, len(items), _AT_ONCE):
        put(items[start : start + _AT_ONCE])
        clock.tick()


_AT_ONCE = 250


def size_of(value: Any, depth: int = 2) -> int:
    """Return the bytes that a copy of a constructor's argument takes; for an array, all its items."""
    kind = type(value)
    if kind in _TEXTS:
        return len(value)
    if kind is list or kind is tuple:
        size = 16 * len(value)
        if depth and not _ATOMS.issuperset(map(type, value)):
            for each in value:
                if type(each) is str:
                    size += len(each)
                elif type(each) not in _ATOMS:
                    size += size_of(each, depth - 1)
        return size
    if kind in _HASHED:
        return 64 * len(value)
    if kind is memoryview:
        return int(value.nbytes)
    return _size_in_library(value) if kind in _OF_LIBRARIES or _is_of_library(kind) else 0


_TEXTS, _HASHED = frozenset({str, bytes, bytearray}), frozenset({dict, set, frozenset})
_ATOMS = frozenset({type(None), bool, int, float, str})
"""Items that nothing copies."""
_OF_LIBRARIES: set[type] = set()
"""Classes that were found to be one of those."""
_LIBRARIES = frozenset({"numpy", "pandas", "pyarrow", "polars"})


def _is_of_library(kind: type) -> bool:
    """Return whether a class really is the class of a library: another may claim any name."""
    module = kind.__module__
    if type(module) is not str or module.partition(".")[0] not in _LIBRARIES:
        return False
    if getattr(sys.modules.get(module), kind.__name__, None) is not kind:
        return False
    _OF_LIBRARIES.add(kind)
    return True


def _size_in_library(value: Any) -> int:
    """Return the bytes of an array or a table; a view shows some of them again and again."""
    if hasattr(type(value), "strides") and type(items := value.size) is int:
        return items * max(int(value.dtype.itemsize), 1)
    size = getattr(value, "nbytes", 0)
    return size if type(size) is int else 0
