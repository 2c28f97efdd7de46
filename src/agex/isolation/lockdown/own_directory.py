"""The directory that a worker may write in: an overlay over shared files, with all changes in memory.

The upper layer is a file system in memory of limited size that no path leads to once the mounts are done: the
worker sees the overlay alone, and the host a descriptor. Beside it are a small ``/tmp``, and two files of
``/etc`` that libraries look for. It needs no mechanism that the kernel level does not need anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from agex.isolation.lockdown.namespaces import NOBODY
from agex.isolation.lockdown.syscalls import mount, umount

__all__ = ["TEMPORARY", "OwnDirectory"]

_NOSUID, _NODEV, _NOEXEC = 2, 4, 8

TEMPORARY = "/tmp"  # noqa: S108 - a mount of this worker alone
_STAGE = "/stage"
_PASSWD, _LOCALTIME = "/etc/passwd", "/etc/localtime"
_MOST_OF_A_ZONE = 16 << 10


class OwnDirectory:
    """The mounts of one worker's directory.

    Args:
        path: the directory's, in the worker.
        lower: of the shared files, in the host; empty for none.
        size_mb: MiB that all changes may take.
        entries: how many files and directories may be new or changed.
        temporary_mb: MiB of ``/tmp``.
    """

    def __init__(self, path: str, lower: str, size_mb: int, entries: int, temporary_mb: int) -> None:
        self.path = path
        self.readable = [_PASSWD, _LOCALTIME]
        self.writable = [path, TEMPORARY, os.devnull]
        self._lower = lower
        self._size_mb = size_mb
        self._entries = entries
        self._temporary_mb = temporary_mb
        self._upper = -1

    def furnish(self, root: str) -> None:
        """Mount everything below a new root, and keep a descriptor of the upper directory."""
        _memory(root + TEMPORARY, self._temporary_mb, self._entries, _NOSUID | _NODEV | _NOEXEC)
        self._write_files(root)
        stage = root + _STAGE
        _memory(stage, self._size_mb, self._entries, _NOSUID | _NODEV)
        upper, work, empty = (Path(stage, name) for name in ("upper", "work", "empty"))
        for each in (upper, work, empty):
            each.mkdir()
        upper.chmod(0o777)
        empty.chmod(0o777)
        Path(root + self.path).mkdir(parents=True)
        options = f"lowerdir=.,upperdir={upper},workdir={work},redirect_dir=off"
        if os.getuid() != 0 or _is_mapped():
            options = f"lowerdir=.,upperdir={upper},workdir={work},userxattr"
        os.chdir(self._lower or empty)  # a name in the options would need to be escaped
        # Modules of the user's own may be compiled: they are mapped from here, and nothing is executed.
        mount("overlay", root + self.path, "overlay", _NOSUID | _NODEV, options)
        os.chdir("/")
        self._upper = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        umount(stage)
        Path(stage).rmdir()

    def _write_files(self, root: str) -> None:
        Path(f"{root}/etc").mkdir(exist_ok=True)
        user = NOBODY if os.getuid() == 0 else os.getuid()
        Path(root + _PASSWD).write_text(f"worker:x:{user}:{user}::{TEMPORARY}:/bin/false\n", encoding="ascii")
        zone = Path(_LOCALTIME)
        content = zone.read_bytes() if zone.is_file() else b""
        Path(root + _LOCALTIME).write_bytes(content if len(content) <= _MOST_OF_A_ZONE else b"")

    def give(self, give: Callable[[int], None]) -> None:
        """Pass on the descriptor of the upper directory, and close it here."""
        give(self._upper)
        os.close(self._upper)
        self._upper = -1


def _memory(target: str, size_mb: int, entries: int, flags: int) -> None:
    """Mount a file system in memory that everybody may write in."""
    Path(target).mkdir(parents=True, exist_ok=True)
    mount("tmpfs", target, "tmpfs", flags, f"size={size_mb}m,nr_inodes={entries},mode=1777")


def _is_mapped() -> bool:
    """Return whether this is a user namespace of its own, where attributes are the user's."""
    return Path("/proc/self/uid_map").read_text(encoding="ascii").split() != ["0", "0", "4294967295"]
