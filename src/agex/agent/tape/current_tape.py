"""The tape that is on: one in a process, for all its threads, so that no task runs past it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from agex.errors import DefinitionError

if TYPE_CHECKING:
    from agex.agent.tape.taped_run import Begins, TapedRun

__all__ = ["Tape", "apart", "current_tape", "switched_on"]


class Tape(Protocol):
    """A tape that is recorded or replayed."""

    def begin(self, begins: Begins) -> TapedRun:
        """Return the run that begins."""
        ...


_lock = threading.Lock()
_on: list[Tape] = []

_APART: ContextVar[bool] = ContextVar("agex_apart_from_tape", default=False)
"""Whether this is work of the host that a tape has as one call: tasks in it are a part of that."""


def current_tape() -> Any:
    """Return the tape that is on here; None for none."""
    return None if not _on or _APART.get() else _on[0]


@contextmanager
def switched_on(tape: Tape) -> Iterator[None]:
    """Put a tape on for the length of a block.

    Raises:
        DefinitionError: another one is on.
    """
    with _lock:
        if _on:
            raise DefinitionError("A tape is on already; record or replay one at a time in a process.")
        _on.append(tape)
    try:
        yield
    finally:
        with _lock:
            _on.remove(tape)


@contextmanager
def apart() -> Iterator[None]:
    """Do work of the host that is one call of the tape."""
    token = _APART.set(True)
    try:
        yield
    finally:
        _APART.reset(token)
