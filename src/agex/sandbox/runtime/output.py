"""The output of guest code: bounded while it is produced, and routed by context.

The first half of the limit and the last half are kept. The text between is counted and dropped, so that a
program that prints without end takes a fixed amount of memory.
"""

from __future__ import annotations

import io
import reprlib
import sys
import threading
from collections import deque
from contextvars import ContextVar
from itertools import islice
from typing import Any, Protocol

__all__ = ["CAPTURE", "Output", "capture_stdout", "echo_text", "release_stdout"]


class Output:
    """The stream of ``print``: keeps at most *limit* characters, the beginning and the end."""

    # No io.TextIOBase: that class closes and flushes itself when it is dropped, three microseconds a run.

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_limit = limit // 2
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._dropped = 0

    def write(self, text: str) -> int:
        """Take *text*; raise TypeError for anything else, as a file does."""
        if type(text) is not str:
            if not isinstance(text, str):
                raise TypeError(f"write() argument must be str, not {type(text).__name__}")
            text = str.__str__(text)
        size = len(text)
        if self._head_room:
            self._head.append(text[: self._head_room])
            text = text[self._head_room :]
            self._head_room -= len(self._head[-1])
        if text:
            self._keep_tail(text)
        return size

    def _keep_tail(self, text: str) -> None:
        if len(text) > self._tail_limit:
            cut = len(text) - self._tail_limit
            self._dropped += cut
            text = text[cut:]
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size > self._tail_limit:
            first = self._tail.popleft()
            cut = min(len(first), self._tail_size - self._tail_limit)
            if cut < len(first):
                self._tail.appendleft(first[cut:])
            self._dropped += cut
            self._tail_size -= cut

    def text(self) -> str:
        """Return the text kept, with a note where something was cut."""
        if not self._head:
            return ""
        note = f"\n... [{self._dropped:,} characters cut] ...\n" if self._dropped else ""
        return "".join(self._head) + note + "".join(self._tail)


class _Writable(Protocol):
    def write(self, text: str) -> int: ...


CAPTURE: ContextVar[_Writable | None] = ContextVar("agex_capture", default=None)
"""The output of the guest code running in this context; None outside."""


class _Router(io.TextIOBase):
    """Stands at ``sys.stdout`` while guest code runs: host code that it calls prints to its output."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def write(self, text: str) -> int:
        target = CAPTURE.get()
        return int((self.original if target is None else target).write(text))

    def flush(self) -> None:
        if CAPTURE.get() is None:
            self.original.flush()

    def close(self) -> None:
        """Do nothing: the host closes its stream. It would be flushed when this object is dropped."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class _Users:
    """How many runs need the routing."""

    def __init__(self) -> None:
        # Reentrant: a collection with the lock held may call close() of a guest file, which is a run.
        self.lock = threading.RLock()
        self.count = 0
        self.last: _Router | None = None
        """The router of ``sys.__stdout__``: made once, not each run."""


_users = _Users()


def capture_stdout() -> None:
    """Route ``sys.stdout`` by context until `release_stdout`. Calls nest and may come from any thread."""
    with _users.lock:
        _users.count += 1
        # Not isinstance(), which reads ``__class__``: on a guest stream that runs code, with the lock held.
        if type(sys.stdout) is not _Router:
            sys.stdout = _router(sys.stdout)


def _router(original: Any) -> _Router:
    last = _users.last
    if last is not None and last.original is original:
        return last
    made = _Router(original)
    if original is sys.__stdout__:
        _users.last = made
    return made


def release_stdout() -> None:
    """Undo one `capture_stdout`; the last one puts the original stream back."""
    with _users.lock:
        _users.count -= 1
        if _users.count == 0 and type(sys.stdout) is _Router:
            sys.stdout = sys.stdout.original


# -- the value of a last expression --------------------------------------------------------------

_LARGE = 1_000  # elements; below that a plain repr is both cheap and complete


class _Bounded(reprlib.Repr):
    """Shows the first elements of a large container and says how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = 50
        self.maxstring = self.maxother = self.maxlong = 2_000
        self.maxlevel = 6

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Write the first items in their order; the base class sorts them."""
        if not x:
            return "{}"
        if level <= 0:
            return "{...}"
        pairs = [
            f"{self.repr1(key, level - 1)}: {self.repr1(value, level - 1)}"
            for key, value in islice(x.items(), self.maxdict)
        ]
        return f"{{{', '.join([*pairs, *(['...'] if len(x) > self.maxdict else [])])}}}"


def echo_text(value: Any, limit: int) -> str:
    """Return ``repr(value)``, with the middle of a long one cut."""
    large = type(value) in (list, tuple, set, frozenset, dict, str, bytes) and len(value) > _LARGE
    text = _Bounded().repr(value) if large else repr(value)
    if large and not isinstance(value, (str, bytes)):
        text += f"  ({len(value):,} elements)"
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n... [{len(text) - 2 * half:,} characters cut] ...\n{text[-half:]}"
    return text
