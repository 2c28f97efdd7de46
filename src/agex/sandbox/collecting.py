"""What the host has the collector call: it is the host's work, wherever a collection comes in a run."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextvars import Context
from typing import Literal, TypeAlias

from agex.sandbox.context import CURRENT

__all__ = ["release_callbacks"]

_Callback: TypeAlias = Callable[[Literal["start", "stop"], dict[str, int]], object]


def release_callbacks() -> None:
    """Have each of ``gc.callbacks`` called as the host: with its files, its streams and no wall.

    They are equal to what they were, for the host takes them out again; another thread may do so meanwhile.
    """
    for callback in [each for each in gc.callbacks if type(each) is not _Released]:
        gc.callbacks.append(_Released(callback))
        gc.callbacks.remove(callback)  # the first of the two, or the other where it is gone already


class _Released:
    """A callback that never sees the context of a run."""

    def __init__(self, callback: _Callback) -> None:
        self._callback = callback

    def __call__(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if CURRENT.get() is None:
            self._callback(phase, info)
        else:
            # An own context is left whatever strikes here; values put in place would have to be put back.
            Context().run(self._callback, phase, info)

    def __eq__(self, other: object) -> bool:
        return self._callback == (other._callback if type(other) is _Released else other)

    def __hash__(self) -> int:
        return hash(self._callback)
