"""What the host has the collector call: it is the host's work, wherever a collection comes in a run."""

from __future__ import annotations

import functools
import gc
from contextvars import Context
from typing import Any

__all__ = ["release_callbacks"]


def release_callbacks() -> None:
    """Have each of ``gc.callbacks`` called as the host: with its files, its streams and no wall.

    They are equal to what they were, for the host takes them out again; another thread may do so meanwhile.
    """
    if not gc.callbacks:
        return
    for callback in [each for each in gc.callbacks if type(each) is not _Released]:
        # One context is enough: there is one collection at a time, of all threads.
        gc.callbacks.append(_Released(Context().run, callback))
        gc.callbacks.remove(callback)  # the first of the two, or the other where it is gone already


class _Released(functools.partial[Any]):
    """A callback in a context of its own. A collection may come where there is no room for a call of ours."""

    def __eq__(self, other: object) -> bool:
        return bool(self.args[0] == (other.args[0] if type(other) is _Released else other))

    def __hash__(self) -> int:
        return hash(self.args[0])
