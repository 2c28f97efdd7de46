"""Regular files of the host, opened without following a link.

A directory or an archive that somebody else made may hold a link, a pipe or a device under any name.
A link would be read or written for another file, a pipe waits for its other end, a device never ends.
The directory itself is the caller's choice, and may be reached by a link.
"""

from __future__ import annotations

import errno
import os
import stat

__all__ = ["open_regular", "read_regular", "require_regular"]

# Without these flags, the check before opening is the only one; a pipe would wait for its writer.
_SAFELY = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def require_regular(found: os.stat_result, path: str | os.PathLike[str], *, alone: bool = False) -> None:
    """Refuse anything but a regular file.

    Args:
        found: the result of ``lstat`` or ``fstat``.
        path: for the message.
        alone: refuse a file with a second name (a hard link), too: a write to it may change another file.

    Raises:
        OSError: it is a link, a directory, a pipe, a socket, a device, or with *alone* a file of two names.
    """
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "it is a link, and links are not followed", os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
    if alone and found.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has another name elsewhere (a hard link)", os.fspath(path))


def open_regular(
    path: str | os.PathLike[str],
    flags: int = os.O_RDONLY,
    *,
    alone: bool = False,
) -> int:
    """Return a descriptor of a regular file.

    Args:
        path: of the file.
        flags: as for ``os.open``, without ``O_TRUNC``: a refused file is not changed.
        alone: see `require_regular`.

    Raises:
        OSError: it is not there, cannot be opened, or is no regular file.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    else:
        require_regular(found, path, alone=alone)
    descriptor = os.open(path, flags | _SAFELY, 0o666)
    try:
        require_regular(os.fstat(descriptor), path, alone=alone)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: str | os.PathLike[str], *, most: int | None = None, alone: bool = False) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: as `open_regular`, or it has more than *most* bytes.
    """
    with os.fdopen(open_regular(path, alone=alone), "rb") as file:
        content = file.read(-1 if most is None else most + 1)
    if most is not None and len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", os.fspath(path))
    return content
