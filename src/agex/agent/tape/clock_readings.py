"""The readings of clocks, and the draws of chance, that are on a tape."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from typing import Any

__all__ = ["reading"]

MOST_BYTES = 1 << 20
"""Of one draw."""


def _bytes(count: int | None = None) -> bytes:
    wanted = 32 if count is None else count
    if type(wanted) is not int or not 0 <= wanted <= MOST_BYTES:
        raise ValueError(f"between 0 and {MOST_BYTES:,} bytes can be drawn")
    return secrets.token_bytes(wanted)


def _below(bound: int) -> int:
    if type(bound) is not int or bound <= 0:
        raise ValueError("Upper bound must be positive.")
    return secrets.randbelow(bound)


_READINGS: dict[str, Callable[..., Any]] = {
    "time": time.time,
    "time_ns": time.time_ns,
    "monotonic": time.monotonic,
    "monotonic_ns": time.monotonic_ns,
    "perf_counter": time.perf_counter,
    "perf_counter_ns": time.perf_counter_ns,
    "process_time": time.process_time,
    "process_time_ns": time.process_time_ns,
    "thread_time": time.thread_time,
    "thread_time_ns": time.thread_time_ns,
    "bytes": _bytes,
    "below": _below,
    "uuid4": lambda: str(uuid.uuid4()),
}


def reading(name: str, args: tuple[Any, ...]) -> Any:
    """Return a reading.

    Raises:
        ValueError: there is no such clock, or it takes no such arguments.
    """
    if name not in _READINGS:
        raise ValueError(f"there is no clock {name!r}")
    return _READINGS[name](*args)
