"""When a run is late, as the host sees it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

__all__ = ["Clock"]


class Clock:
    """Counts the seconds of a run. It stands still while the host works for the guest.

    Args:
        seconds: that there are; None for no end.
        of_guest: whether it is guest code that takes them, and not a chore of the worker's.

    Attributes:
        due: when the run is late, on `time.monotonic`; None for never.
        stood: for how many seconds it stood still so far.
    """

    def __init__(self, seconds: float | None, *, of_guest: bool = True) -> None:
        self.seconds = seconds
        self.of_guest = of_guest
        self.due = None if seconds is None else time.monotonic() + seconds
        self.stood = 0.0
        self._since: float | None = None

    @property
    def stands(self) -> bool:
        """Whether it stands still."""
        return self._since is not None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stand still for the length of a block; calls nest."""
        if self._since is not None:
            yield
            return
        self._since = time.monotonic()
        try:
            yield
        finally:
            passed = time.monotonic() - self._since
            self._since = None
            self.stood += passed
            if self.due is not None:
                self.due += passed
