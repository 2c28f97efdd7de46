"""Room on the stack for what must not fail half way."""

from __future__ import annotations

__all__ = ["require_room"]

_LEVELS = 24
"""Twice what beginning or ending a run takes at most, in calls that go through C code."""


def require_room(levels: int = _LEVELS) -> None:
    """Raise RecursionError here, where nothing is changed yet, rather than in the midst of the work.

    What ends the work begins where this was called, so there is as much room for it.
    """
    if levels:
        next(map(require_room, (levels - 1,)))
