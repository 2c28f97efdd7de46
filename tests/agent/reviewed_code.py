"""Functions that a person has written or read, for tests of ``solution=``."""

from __future__ import annotations

CALLS: list[object] = []


def double(x: int) -> int:
    """Double a small number."""
    CALLS.append(x)
    if x > 10:
        raise ValueError(f"{x} is too large for me")
    return x * 2


def as_text(x: int) -> str:
    """Break the contract."""
    return str(x)


def wrong(x: int) -> int:
    """Pass for some numbers only."""
    return x + 2


async def later(x: int) -> int:
    """Double it later."""
    return x * 2


def of_two(x: int, y: int) -> int:
    """Take other inputs than the task."""
    return x + y


NO_FUNCTION = 3
