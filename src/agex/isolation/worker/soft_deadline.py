"""Soft deadline of a run of full Python: a signal that raises in the code, before the host kills its worker.

Code may catch what the signal raises, so it strikes again and again. Code that ignores the signal, and a call
into C that does not return, are ended by the host: see `connection.GRACE`.
"""

from __future__ import annotations

import signal
import threading
import time

__all__ = ["SoftDeadline"]

_AGAIN = 0.05
"""Seconds between two strikes: ten of them before the host kills the worker."""
_AT_ONCE = 1e-6
"""Seconds of a timer that is due: 0 would stop it."""


class SoftDeadline:
    """The clock of one run. It stands still while the host works for guest code.

    Args:
        seconds: for the run; None for no deadline.

    Attributes:
        is_on: whether the run is on, so that a signal that arrives late strikes nobody.
    """

    def __init__(self, seconds: float | None) -> None:
        self.is_on = False
        self._left = seconds
        self._due: float | None = None
        self._pauses = 0
        self._lock = threading.Lock()  # threads of guest code use host objects, too

    def start(self) -> None:
        """Start to count."""
        with self._lock:
            self.is_on = True
            self._arm()

    def cancel(self) -> None:
        """Stop for good; may be called again."""
        self.is_on = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def pause(self) -> None:
        """Stand still until `resume`; calls nest."""
        with self._lock:
            self._pauses += 1
            if self._due is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
                self._left, self._due = self._due - time.monotonic(), None

    def resume(self) -> None:
        """Undo one `pause`."""
        with self._lock:
            self._pauses -= 1
            self._arm()

    def charge(self, seconds: float) -> None:
        """Take seconds off a clock that stands."""
        with self._lock:
            if self._left is not None:
                self._left -= seconds

    @property
    def stands(self) -> bool:
        """Whether it stands still."""
        return self._pauses > 0

    def _arm(self) -> None:
        if self.is_on and self._pauses == 0 and self._left is not None:
            self._due = time.monotonic() + self._left
            signal.setitimer(signal.ITIMER_REAL, max(self._left, _AT_ONCE), _AGAIN)
