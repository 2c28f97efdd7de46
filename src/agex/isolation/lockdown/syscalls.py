"""System calls that the standard library does not have, by ctypes."""

from __future__ import annotations

import ctypes
import os
import platform
from typing import Any

__all__ = ["libc", "machine", "mount", "pivot_root", "prctl", "syscall", "umount", "unshare"]

libc = ctypes.CDLL(None, use_errno=True)

_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def machine() -> str:
    """Return the architecture, as the kernel calls it."""
    return platform.machine()


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(what: str, number: int, *args: Any) -> int:
    """Make a system call.

    Raises:
        OSError: it failed; the message begins with *what*.
    """
    return _checked(libc.syscall(ctypes.c_long(number), *args), what)


def prctl(what: str, option: int, *args: Any) -> int:
    """Set something of this process."""
    rest = [ctypes.c_ulong(arg) if isinstance(arg, int) else arg for arg in args]
    rest += [ctypes.c_ulong(0)] * (4 - len(rest))
    return _checked(libc.prctl(option, *rest), what)


def unshare(flags: int) -> None:
    """Leave the namespaces that *flags* name, for new ones."""
    _checked(libc.unshare(flags), "new namespaces")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system, or a part of one, somewhere else."""
    _checked(
        libc.mount(
            source.encode(),
            target.encode(),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            data.encode(),
        ),
        f"mounting {target}",
    )


def umount(target: str) -> None:
    """Unmount what is mounted there, as soon as nobody uses it."""
    _checked(libc.umount2(target.encode(), _MNT_DETACH), f"unmounting {target}")


def pivot_root(new: str, old: str) -> None:
    """Make *new* the root, and put the old one at *old* below it."""
    syscall("a root of its own", _PIVOT_ROOT[machine()], new.encode(), old.encode())
