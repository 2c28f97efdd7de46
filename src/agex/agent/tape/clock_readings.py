"""The readings of clocks, and the draws of chance, that are on a tape."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from typing import Any

from agex.sandbox.stdlib.clock import CLOCKS

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
    **{name: getattr(time, name) for name in CLOCKS},
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
