"""A directory of a process that may be hostile, walked and read through a descriptor.

The process may change the directory while it is walked. So no path is resolved by its text alone: `openat2`
refuses links, mounts and ``..`` in the kernel, and the opened file decides its kind, not its name. Nothing is
opened that could wait: neither pipe nor device. Every number that the process chooses has a bound.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from dataclasses import dataclass, field
from typing import TypeAlias

from agex.isolation.lockdown.syscalls import syscall

__all__ = ["FileStamp", "Refused", "TooManyEntries", "Walk", "WalkBounds", "read_file", "walk"]

FileStamp: TypeAlias = tuple[int, int, int, int]
"""Inode, size, times of the last write and of the last change, in nanoseconds."""

_OPENAT2 = 437  # the same on all architectures
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x01, 0x02, 0x04, 0x08
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_OPAQUE = "trusted.overlay.opaque", "user.overlay.opaque"
"""The mark of a directory that hides the one below it: of root, and of a user namespace."""
_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class WalkBounds:
    """Limits of one walk."""

    entries: int = 50_000
    """Names of all kinds."""
    depth: int = 64
    """Directories in each other."""
    path: int = 4096
    """Bytes of a path."""
    size: int = 1 << 30
    """Bytes of one file."""


class TooManyEntries(Exception):
    """The directory has more names than a walk looks at."""


@dataclass(frozen=True)
class Refused:
    """A name that is not part of the workspace, and the reason."""

    path: str
    reason: str
    hides: bool = False
    """Whether there is something else now at this path; else its former content is still there."""


@dataclass
class Walk:
    """The result of a walk; paths are relative and have no slash at either end."""

    files: dict[str, FileStamp] = field(default_factory=dict)
    directories: dict[str, bool] = field(default_factory=dict)
    """Whether a directory hides the one below it, by path."""
    whiteouts: set[str] = field(default_factory=set)
    """Names of the lower directory that were removed."""
    refused: list[Refused] = field(default_factory=list)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def _open_beneath(at: int, path: str, flags: int = 0) -> int:
    """Open a file below a directory without following a link or leaving the mount."""
    how = _OpenHow(_FLAGS | flags, 0, _NO_XDEV | _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH)
    return syscall(
        "opening a file of the workspace",
        _OPENAT2,
        ctypes.c_int(at),
        os.fsencode(path),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )


def walk(root: int, bounds: WalkBounds, *, overlay: bool) -> Walk:
    """Look at everything below a directory, at the cost of what is there. No file is opened.

    Args:
        root: a descriptor of the directory.
        bounds: limits of the walk.
        overlay: whether it is the upper directory of an overlay, where a device 0/0 is a removed name.

    Raises:
        TooManyEntries: there are more names than the bounds allow.
        OSError: the root itself cannot be read.
    """
    found = Walk()
    names = 0
    behind: list[tuple[str, int]] = [("", 0)]
    while behind:
        path, depth = behind.pop()
        try:
            at = _open_beneath(root, path or ".", os.O_DIRECTORY)
        except OSError as error:
            if not path:
                raise
            found.refused.append(Refused(path, _reason(error)))
            continue
        try:
            if path:
                found.directories[path] = overlay and _is_opaque(at)
            with os.scandir(at) as entries:
                for entry in entries:
                    names += 1
                    if names > bounds.entries:
                        raise TooManyEntries(f"there are more than {bounds.entries:,} files and directories")
                    below = f"{path}/{entry.name}" if path else entry.name
                    if not _note(found, below, entry, bounds, overlay=overlay):
                        continue
                    if depth + 1 < bounds.depth:
                        behind.append((below, depth + 1))
                    else:
                        found.refused.append(Refused(below, f"more than {bounds.depth} directories deep"))
        finally:
            os.close(at)
    return found


def _note(found: Walk, path: str, entry: os.DirEntry[str], bounds: WalkBounds, *, overlay: bool) -> bool:
    """Note one name; return whether it is a directory to walk."""
    try:
        about = entry.stat(follow_symlinks=False)
        length = len(path.encode())
    except FileNotFoundError:  # removed meanwhile
        return False
    except UnicodeEncodeError:
        found.refused.append(Refused(path, "its name is not UTF-8"))
        return False
    mode = about.st_mode
    if overlay and stat.S_ISCHR(mode) and about.st_rdev == 0:
        found.whiteouts.add(path)
    elif length > bounds.path:
        found.refused.append(Refused(path, f"its path has more than {bounds.path:,} bytes"))
    elif stat.S_ISDIR(mode):
        return True
    elif not stat.S_ISREG(mode):
        found.refused.append(Refused(path, f"it is {_kind(mode)}", hides=True))
    elif about.st_size > bounds.size:
        found.refused.append(Refused(path, _too_large(about.st_size, bounds)))
    else:
        found.files[path] = _stamp(about)
    return False


def read_file(root: int, path: str, bounds: WalkBounds) -> tuple[bytes, FileStamp] | Refused:
    """Return the bytes of a file below a directory and its stamp before, or the reason against it."""
    try:
        descriptor = _open_beneath(root, path)
    except OSError as error:
        return Refused(path, _reason(error))
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return Refused(path, f"it is {_kind(about.st_mode)}", hides=True)
        content = bytearray()
        while len(content) <= bounds.size:
            piece = os.read(descriptor, _CHUNK)
            if not piece:
                return bytes(content), _stamp(about)
            content += piece
        return Refused(path, _too_large(about.st_size, bounds))
    except OSError as error:
        return Refused(path, _reason(error))
    finally:
        os.close(descriptor)


def _stamp(about: os.stat_result) -> FileStamp:
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _is_opaque(directory: int) -> bool:
    for name in _OPAQUE:
        try:
            return os.getxattr(directory, name) == b"y"
        except OSError as error:
            if error.errno not in (errno.ENODATA, errno.ENOTSUP):
                raise
    return False


def _kind(mode: int) -> str:
    for is_kind, text in (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISDIR, "a directory"),
    ):
        if is_kind(mode):
            return text
    return "of an unknown kind"


def _too_large(size: int, bounds: WalkBounds) -> str:
    return f"it has {size:,} bytes, and {bounds.size:,} is the most"


def _reason(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.EXDEV, errno.ENOTDIR, errno.ENOENT, errno.ENXIO):
        return "it was replaced while it was read"
    return f"it cannot be read: {os.strerror(error.errno or errno.EIO)}"
