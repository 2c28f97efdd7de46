"""A worker's process as the host holds it still: between actions, nothing in its directory changes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

__all__ = ["ProcessControl", "may_write_mapped"]

_STOP_SECONDS = 5.0
_AGAIN_SECONDS = 0.0001
_AT_ONCE = 20
"""Looks at a worker that has just handed over, without a wait between them: it has microseconds to go."""
_STANDING = "TtZX"  # stopped, traced, ended: see proc(5)
_AT_REST = "S" + _STANDING
_THREADS = 16
"""The field that counts them, from the state on."""


class ProcessControl:
    """The means to stop a process and to let it go on.

    Args:
        pidfd: of the process; this object has a copy of its own.
    """

    def __init__(self, pidfd: int) -> None:
        self._pidfd = os.dup(pidfd)
        self._folder = Path("/proc", _number(self._pidfd))
        self._stat = os.open(self._folder / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self._stands = False

    def stop(self, *, wait: bool = True) -> None:
        """Stop all threads; return when none of them runs any more.

        Raises:
            TimeoutError: one of them does not stop.
        """
        self._signal(signal.SIGSTOP)
        self._stands = True
        looks, due = 0, time.monotonic() + _STOP_SECONDS
        while wait and not self._is_still():
            looks += 1
            if time.monotonic() > due:
                raise TimeoutError("the worker does not stop")
            if looks > _AT_ONCE:
                time.sleep(_AGAIN_SECONDS)
            else:
                os.sched_yield()  # it may wait for this very core

    def go_on(self) -> bool:
        """Let a stopped process go on; return whether it was stopped."""
        stood, self._stands = self._stands, False
        if stood:
            self._signal(signal.SIGCONT)
        return stood

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _is_still(self) -> bool:
        """Return whether no thread runs: one that waits alone takes the signal before it runs again."""
        try:
            state, *fields = os.pread(self._stat, 4096, 0).rpartition(b")")[2].split()
            if fields[_THREADS] == b"1":
                return state.decode() in _AT_REST
            return all(map(_stands, (self._folder / "task").iterdir()))
        except (FileNotFoundError, ProcessLookupError):  # it ended
            return True

    def may_write_mapped(self) -> bool:
        """Return whether it has a file mapped that it may change without a call of the kernel."""
        return may_write_mapped(self._folder.name)

    def close(self) -> None:
        """Close the descriptors of this object."""
        os.close(self._pidfd)
        os.close(self._stat)


def may_write_mapped(process: str) -> bool:
    """Return whether a process has a file mapped that it may change without a call of the kernel.

    Such a write changes the times of a file in memory only the first time.
    """
    try:
        lines = Path("/proc", process, "maps").read_bytes().splitlines()
    except OSError:
        return True
    for line in lines:
        _, rights, _, _, inode, *_ = line.split(maxsplit=5)
        if rights[1:2] == b"w" and rights[3:4] == b"s" and inode != b"0":
            return True
    return False


def _stands(thread: Path) -> bool:
    try:
        about = (thread / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return about.rpartition(b")")[2].split()[0].decode() in _STANDING


def _number(pidfd: int) -> str:
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "Pid":
            return value.strip()
    raise OSError("the kernel does not say which process a descriptor is of")
