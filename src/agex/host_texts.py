"""Texts that host code writes about its objects: a repr, the message of an error.

Such code may wait, never end or raise. It is asked in a helper thread, and waited for a moment only; a late
answer is dropped. It is not interrupted, for it may hold a lock. Code that keeps the interpreter's own lock
(one long call in C) holds up its caller all the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from agex._interpreter import threads
from agex._interpreter.type_slots import name_of

__all__ = ["HostTexts"]

_MOST_CHARS = 100_000
"""Of a text; where it is shown, it is cut further."""

_late: dict[int, threading.Thread] = {}
"""By the id of a class, the thread that still writes a text of it. The thread keeps the class."""


class HostTexts:
    """Asks objects of the host for their texts.

    While a text of some object is late, no object of its class is asked: there is one waiting thread a class,
    and a thousand slow objects take no longer than one.

    Args:
        seconds: of all texts together.
        each: seconds of one text.
    """

    def __init__(self, seconds: float = 1.0, each: float = 0.3) -> None:
        self._left = seconds
        self._each = each
        self.failures = 0
        """Texts that failed or were too slow."""

    def of(self, value: Any, write: Callable[[Any], str] = repr) -> str | None:
        """Return what *write* makes of *value*, or in angle brackets why there is no text.

        None where it was not asked: the time is used up, or no thread can be started.
        """
        kind = type(value)
        late = _late.get(id(kind))
        if late is not None:
            if late.is_alive():
                self.failures += 1
                return _without(kind, write, "too slow")
            _late.pop(id(kind), None)
        if self._left <= 0 or not threads.CAN_START:
            return None
        told: list[str] = []

        def work() -> None:
            try:
                told.append(str.__str__(write(value))[:_MOST_CHARS])
            except BaseException as error:  # noqa: BLE001 - code of anybody's; the text says so
                self.failures += 1
                told.append(_without(kind, write, f"failed: {name_of(type(error))}"))

        thread = threading.Thread(target=copy_context().run, args=(work,), name="agex text", daemon=True)
        begun = time.monotonic()
        try:
            thread.start()
        except RuntimeError:  # there are as many threads as there can be
            return None
        thread.join(min(self._each, self._left))
        self._left -= time.monotonic() - begun
        if told:
            return told[0]
        _late[id(kind)] = thread
        self.failures += 1
        return _without(kind, write, "too slow")


def _without(kind: type, write: Callable[[Any], str], why: str) -> str:
    what = "repr" if write is repr else "text"
    return f"<{name_of(kind)}, {what} {why}>"
