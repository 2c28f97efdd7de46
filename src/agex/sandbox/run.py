"""One run of guest code, and what it found in force."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextvars import Token
from typing import Any

from agex.sandbox.libraries.process_state import Held
from agex.sandbox.patches.threading import THREADED
from agex.sandbox.runtime import audit_hook as wall
from agex.sandbox.runtime import float_state as floating
from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.runtime.limits import Deadline, Limits
from agex.sandbox.runtime.output import CAPTURE, Output
from agex.sandbox.runtime.resource_limits import resource_limits
from agex.sandbox.runtime.result import Result

__all__ = ["Run"]


class Run:
    """One run, and what it found in force."""

    is_begun = False
    """Whether the guest has a decimal context of its own in place of the host's."""
    decimals: Any = None
    """The one of the two that is not in force."""
    tokens: tuple[Token[Any], Token[Any], Token[Any]] | None = None
    """What sets the variables of the context back."""
    process: Held | None = None
    """The settings of the process that it puts back, where its policy grants what may change them."""
    outer: Deadline | None = None
    """That of the run around this one."""
    _watch: Deadline | None = None

    def __init__(
        self,
        limits: Limits,
        output: Callable[[int], Output],
        expire: Callable[[], None],
        *,
        raises: bool,
        host_works: Callable[[int], bool] | None = None,
    ) -> None:
        self.result = Result()
        self.output = output(limits.output_chars)
        self.deadline = Deadline(limits.seconds, expire, raises=raises, host_works=host_works)
        self._expire = expire
        if self.deadline.by_signal and THREADED in sys.modules:
            self._watch = Deadline(limits.seconds, self._end_unmet, raises=False, host_works=host_works)
        self.held = resource_limits(limits)
        self._floating = floating.in_force()
        self.start = time.perf_counter()

    def start_clock(self) -> None:
        """Start to count the time that guest code takes."""
        self.deadline.start()
        if self._watch is not None:
            self._watch.start()

    def _stop_clock(self) -> None:
        self.deadline.cancel()
        watch, self._watch = self._watch, None  # it knows this run: what the guest let go of goes at once
        if watch is not None:
            watch.cancel()

    def _end_unmet(self) -> None:
        """End a run whose thread meets no signal: it waits in compiled code for other threads."""
        if self.deadline.active and time.monotonic() - self.deadline.due > _UNMET:
            self._expire()

    def ease(self) -> None:
        """Stop the clock: the guest's code is over."""
        self.held.ease()
        self._stop_clock()

    def end(self) -> None:
        """Lift all limits; may be called again."""
        self._stop_clock()
        self.held.end()

    def give_back(self) -> None:
        """Put back what this run found.

        Raises:
            ValueError: the run was dropped, and this is another context than its own: that stays as it is,
                for it may be one of another guest's.
        """
        try:
            floating.give_back(self._floating)
        finally:
            try:
                if self.tokens is not None:
                    capture, guest, doors = self.tokens
                    wall.DOORS.reset(doors)
                    CURRENT.reset(guest)
                    CAPTURE.reset(capture)
            finally:
                if self.is_begun:
                    self.decimals = floating.give_decimals_back(self.decimals)
                self.held.end()


_UNMET = 0.1
"""Seconds after which a signal that was due has met no Python code."""
