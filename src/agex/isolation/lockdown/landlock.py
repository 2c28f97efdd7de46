"""Landlock: rights that a process gives up for good. See landlock(7) and its kernel documentation."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from agex.isolation.lockdown.syscalls import syscall

__all__ = ["abi", "restrict"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_VERSION = 1
_PATH_BENEATH = 1

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_NEVER = 1 << 0 | 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 15
"""Rights that no directory gives: to execute, to make devices, sockets and pipes, to control a device."""
_FILES_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights over files that a version knows: to execute, write, read, list, remove, make, truncate, ..."""
_NET_SINCE, _BIND_AND_CONNECT = 4, 0b11
_SCOPE_SINCE, _SOCKETS_AND_SIGNALS = 6, 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # what _pack_ needs from Python 3.14 on
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """Return the version of Landlock here; 0 where there is none."""
    try:
        return syscall("landlock", _CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def restrict(readable: Sequence[str], writable: Sequence[str] = ()) -> None:
    """Drop all access to files but reading these, and to the network.

    It holds for this thread and those it starts: apply it before any other is there.

    Args:
        readable: files, and folders with all in them.
        writable: folders whose files can be read, written, made, moved and removed, and device files.
    """
    version = abi()
    files = _FILES_BY_ABI[max(known for known in _FILES_BY_ABI if known <= version)]
    ruleset = _Ruleset(
        files,
        _BIND_AND_CONNECT if version >= _NET_SINCE else 0,
        _SOCKETS_AND_SIGNALS if version >= _SCOPE_SINCE else 0,
    )
    size = ctypes.sizeof(ruleset) if version >= _SCOPE_SINCE else 16 if version >= _NET_SINCE else 8
    own = syscall(
        "landlock rules", _CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    try:
        for path in readable:
            _allow(own, path, _READ_FILE | (_READ_DIR if Path(path).is_dir() else 0))
        for path in writable:
            _allow(own, path, files & ~_NEVER if Path(path).is_dir() else _READ_FILE | _WRITE_FILE)
        syscall("landlock", _RESTRICT_SELF, ctypes.c_int(own), ctypes.c_uint32(0))
    finally:
        os.close(own)


def _allow(ruleset: int, path: str, allowed: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(allowed, parent)
        syscall(
            f"landlock for {path}",
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(parent)
