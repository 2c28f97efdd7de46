"""Deadline of a run, as the host counts it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

__all__ = ["RunClock"]


class RunClock:
    """Clock of a run. It stands still while the host works for guest code.

    While it is *lent*, it counts again for guest code that the host calls.

    Args:
        seconds: until the run is late; None for never.
        of_guest: whether guest code takes them, and not a chore of the worker.

    Attributes:
        due: when the run is late, on `time.monotonic`; None for never.
        stood: seconds for which it stood still so far.
    """

    def __init__(self, seconds: float | None, *, of_guest: bool = True) -> None:
        self.seconds = seconds
        self.of_guest = of_guest
        self.due = None if seconds is None else time.monotonic() + seconds
        self.stood = 0.0
        self._since: float | None = None
        self._is_lent = False

    @property
    def stands(self) -> bool:
        """Whether it stands still, also for guest code."""
        return self._since is not None and not self._is_lent

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stand still for the length of a block; calls nest."""
        with self._standing(is_lent=False):
            yield

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Stand still for the length of a block, but for guest code in it: see `counted`."""
        with self._standing(is_lent=True):
            yield

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count again for the length of a block, if it is lent."""
        if not self._is_lent:
            yield
            return
        self._go_on()
        try:
            yield
        finally:
            self._since, self._is_lent = time.monotonic(), True

    @contextlib.contextmanager
    def _standing(self, *, is_lent: bool) -> Iterator[None]:
        if self._since is not None:
            yield
            return
        self._since, self._is_lent = time.monotonic(), is_lent
        try:
            yield
        finally:
            self._go_on()

    def _go_on(self) -> None:
        assert self._since is not None
        passed = time.monotonic() - self._since
        self._since, self._is_lent = None, False
        self.stood += passed
        if self.due is not None:
            self.due += passed
