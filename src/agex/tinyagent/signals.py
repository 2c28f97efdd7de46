"""Signals of an agent about its own reasoning.

The three functions are there in the agent's code, and for tools on the host. Their signals are
collected by the run in whose context they are called; outside of a run they only make the signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum

__all__ = ["Signal", "SignalType", "collected", "commit", "explore", "uncertain"]

MESSAGE_CHARS = 2_000
"""Of one message; the rest is cut."""


class SignalType(Enum):
    """The kind of a signal."""

    UNCERTAIN = "uncertain"
    EXPLORE = "explore"
    COMMIT = "commit"


@dataclass(frozen=True)
class Signal:
    """One signal. ``str()`` gives ``[UNCERTAIN] message``."""

    signal_type: SignalType
    message: str
    step: int = 0
    """The step of the run it was said in, from 1; 0 outside of a run."""
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)

    def __str__(self) -> str:
        return f"[{self.signal_type.name}] {self.message}"


Collect = Callable[[SignalType, str], Signal]

_COLLECT: ContextVar[Collect] = ContextVar("agex_signals", default=Signal)


@contextmanager
def collected(collect: Collect) -> Iterator[None]:
    """Let *collect* make the signals of this context for the length of a block."""
    token = _COLLECT.set(collect)
    try:
        yield
    finally:
        _COLLECT.reset(token)


def uncertain(message: str) -> Signal:
    """Say what is unclear or has been assumed."""
    return _say(SignalType.UNCERTAIN, message)


def explore(message: str) -> Signal:
    """Say what is being tried out, and what for."""
    return _say(SignalType.EXPLORE, message)


def commit(message: str) -> Signal:
    """Say what is settled. It does not end the task: ``final_answer`` does."""
    return _say(SignalType.COMMIT, message)


def _say(kind: SignalType, message: str) -> Signal:
    if not isinstance(message, str):
        raise TypeError(f"{kind.value}() takes a text, not {type(message).__name__}")
    text = str.__str__(message)  # a subclass of the agent's own may have methods of any kind
    return _COLLECT.get()(kind, text[:MESSAGE_CHARS])
