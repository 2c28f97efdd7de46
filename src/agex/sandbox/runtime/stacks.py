"""The calls that a thread is in, seen from another one."""

from __future__ import annotations

import contextlib
import itertools
import operator
import sys
import types
from typing import Any

from agex._interpreter import parse as parsing

__all__ = ["builtins_inside", "frames_of", "is_inside"]


def builtins_inside(thread: int, base: types.FrameType) -> list[dict[str, Any]]:
    """Give the builtins of each call that a thread is in, the innermost first, up to the frame *base*.

    Nothing, where the thread is not in that frame: an event loop is at something else.
    """
    found = frames_of(thread)
    try:
        return [frame.f_builtins for frame in found[: found.index(base)]] if base in found else []
    finally:
        found.clear()  # of this very thread, they hold this list


def is_inside(thread: int, builtins: dict[str, Any]) -> bool:
    """Return whether a thread is in a call of a function that has these builtins."""
    found = frames_of(thread)
    try:
        return any(frame.f_builtins is builtins for frame in found if frame is not None)
    finally:
        found.clear()


def frames_of(thread: int) -> list[Any]:
    """Return the frames that a thread is in, the innermost first. The caller clears the list.

    Following ``f_back`` while the thread runs on ends the process now and then: seen on Python 3.11. So the
    whole walk is one call into C, with no collection in it that could let another thread run.
    """
    found: list[Any] = []

    def walk() -> None:
        frames: Any = sys._current_frames  # pyright: ignore[reportPrivateUsage] - not called yet
        first = map(operator.itemgetter(thread), itertools.starmap(frames, [()]))
        found.extend(itertools.accumulate(itertools.chain(first, itertools.repeat("f_back")), getattr))

    try:
        # The outermost frame has None behind it, which has no f_back; and the thread may be over.
        with contextlib.suppress(AttributeError, KeyError):
            parsing.undisturbed(walk)
    except BaseException:
        found.clear()
        raise
    return found
