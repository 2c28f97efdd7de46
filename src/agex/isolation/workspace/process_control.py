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
        self._stands = False

    def stop(self, *, wait: bool = True) -> None:
        """Stop all threads; return when none of them runs any more.

        Raises:
            TimeoutError: one of them does not stop.
        """
        self._signal(signal.SIGSTOP)
        self._stands = True
        due = time.monotonic() + _STOP_SECONDS
        while wait and not (self._is_one_at_rest() or self._all_stand()):
            if time.monotonic() > due:
                raise TimeoutError("the worker does not stop")
            time.sleep(_AGAIN_SECONDS)

    def go_on(self) -> bool:
        """Let a stopped process go on; return whether it was stopped."""
        stood, self._stands = self._stands, False
        if stood:
            self._signal(signal.SIGCONT)
        return stood

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _is_one_at_rest(self) -> bool:
        """Return whether there is one thread, which runs nothing before it takes the signal."""
        try:
            state, *fields = (self._folder / "stat").read_bytes().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return True
        return fields[_THREADS] == b"1" and state.decode() in _AT_REST

    def _all_stand(self) -> bool:
        try:
            return all(map(_stands, (self._folder / "task").iterdir()))
        except (FileNotFoundError, ProcessLookupError):  # it ended
            return True

    def may_write_mapped(self) -> bool:
        """Return whether it has a file mapped that it may change without a call of the kernel."""
        return may_write_mapped(self._folder.name)

    def close(self) -> None:
        """Close the copy of the descriptor."""
        os.close(self._pidfd)


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
