"""Namespaces of a worker: no network, no processes, and no files but those of the interpreter."""

from __future__ import annotations

import contextlib
import ctypes
import os
import site
import socket
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agex.isolation.lockdown.syscalls import mount, pivot_root, syscall, umount, unshare

__all__ = [
    "DEVICES",
    "HOSTNAME",
    "NOBODY",
    "drop_rights",
    "enter",
    "hidden_processes",
    "installation",
    "own_processes",
]

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000

_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18

NOBODY = 65534
"""The user and group of a worker whose host is root."""

_SYSTEM = (
    "/usr/lib",
    "/usr/lib64",
    "/lib",
    "/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
)
"""Shared libraries, which extension modules load, and time zones."""
HOSTNAME = "worker"
"""Host name of a worker's machine, there and in a container."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
"""Device files that an interpreter and its libraries use."""


def installation() -> list[str]:
    """Return the folders and files that an interpreter reads: itself, installed packages, libraries.

    Other importable folders, such as that of a project, are not among them: they hold more than modules.
    Registered modules from there are loaded before the walls go up.
    """
    found = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= {*site.getsitepackages(), str(Path(sys.base_prefix, "lib")), *_SYSTEM}
    real = sorted({os.path.realpath(path) for path in found if path and Path(path).exists()})
    return [path for path in real if not any(path.startswith(other + "/") for other in real)]


def own_processes() -> None:
    """Put the children of this process into a process namespace of their own.

    Without the rights of root it needs a user namespace, too, which is of this process as well.
    """
    if os.geteuid() == 0:
        unshare(_NEWPID)
        return
    user, group = os.geteuid(), os.getegid()
    unshare(_NEWUSER | _NEWPID)
    _map_ids(user, group)


@contextlib.contextmanager
def hidden_processes() -> Iterator[None]:
    """Hide ``/proc`` from this process in a block, which leaves the host's mounts for a copy of them.

    Libraries look for it when they are imported, and rely on it later: in a worker, which has none.
    """
    unshare(_NEWNS)
    mount("none", "/", None, _REC | _PRIVATE)
    mount("tmpfs", "/proc", "tmpfs", _NOSUID | _NODEV | _NOEXEC, "size=4k,nr_inodes=8,mode=555")
    try:
        yield
    finally:
        umount("/proc")


def _map_ids(user: int, group: int) -> None:
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def enter(readable: Sequence[str], furnish: Callable[[str], None] | None = None) -> None:
    """Enter new namespaces: no network but a dead loopback, and no files but the readable ones.

    Args:
        readable: folders and files.
        furnish: puts more into the new root, whose path it gets, before the rest and while the old is there.
    """
    flags = _NEWNS | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP
    if os.geteuid() == 0:
        unshare(flags)
    else:
        user, group = os.geteuid(), os.getegid()
        unshare(_NEWUSER | flags)
        _map_ids(user, group)
    socket.sethostname(HOSTNAME)
    _own_root(readable, furnish)


def _own_root(readable: Sequence[str], furnish: Callable[[str], None] | None) -> None:
    """Make a root that holds the readable files and nothing else."""
    mount("none", "/", None, _REC | _PRIVATE)
    root = "/sys"  # covered by a mount that only this process sees; nothing is installed there
    mount("tmpfs", root, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "size=64k,nr_inodes=1k,mode=755")
    mask = os.umask(0o022)  # these folders must lead nowhere
    if furnish is not None:  # first: an installation may lie below one of these folders
        furnish(root)
    for path in (*readable, *DEVICES):
        _show(path, root + path)
    for path in ("/lib", "/lib64"):
        if Path(path).is_symlink() and not os.path.lexists(root + path):
            Path(root + path).symlink_to(Path(path).readlink())
    old = f"{root}/old"
    Path(old).mkdir()
    os.umask(mask)
    pivot_root(root, old)
    os.chdir("/")
    umount("/old")
    Path("/old").rmdir()
    mount("none", "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def _show(path: str, target: str) -> None:
    """Mount a folder or file of the host read-only."""
    place = Path(target)
    if Path(path).is_dir():
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    mount(path, target, None, _BIND)
    flags = _NOSUID if path in DEVICES else _NOSUID | _NODEV | _RDONLY
    mount("none", target, None, _REMOUNT | _BIND | flags)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


_CAPSET = {"x86_64": 126, "aarch64": 91}
_VERSION_3 = 0x20080522


def drop_rights() -> None:
    """Become the user nobody, without capabilities, in a user namespace that counts its own threads."""
    if os.geteuid() == 0:
        with contextlib.suppress(PermissionError):
            os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        unshare(_NEWUSER)
    header, nothing = _Header(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    syscall("no capabilities", _CAPSET[os.uname().machine], ctypes.byref(header), ctypes.byref(nothing))
