"""Putting up the walls of a worker, in their order, and saying which cannot be had."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from typing import Any

from agex.isolation.executor import Wall
from agex.isolation.lockdown import landlock, namespaces, seccomp
from agex.isolation.lockdown.syscalls import machine, prctl

__all__ = ["LEAST_LANDLOCK", "enclose", "missing", "walls"]

_PDEATHSIG, _NO_NEW_PRIVS = 1, 38

LEAST_LANDLOCK = 3
"""The version that also forbids to cut files short (Linux 6.2). The network is closed by others, too."""


def missing() -> list[str]:
    """Name what this system lacks, each with what to do about it; nothing where the level may hold."""
    if sys.platform != "linux":
        return [f"Linux (this is {sys.platform}): use isolation='container'"]
    lacks: list[str] = []
    if machine() not in seccomp.ARCHITECTURES:
        lacks.append(f"a list of system calls for {machine()}: use isolation='container'")
    if landlock.abi() < LEAST_LANDLOCK:
        lacks.append(
            f"Landlock ABI {LEAST_LANDLOCK} (here {landlock.abi()}): use Linux 6.2 or later with 'landlock' "
            "in its lsm= list, or isolation='container'"
        )
    return lacks


def walls() -> tuple[Wall, ...]:
    """Return what holds a worker of this level."""
    return (
        Wall(name="namespaces", detail="user, pid, mount, network, ipc, uts, cgroup"),
        Wall(name="landlock", detail=f"ABI {landlock.abi()}"),
        Wall(name="seccomp", detail=f"allowed calls only, {machine()}"),
        Wall(name="no_new_privs", detail="no capabilities"),
        Wall(name="rlimits", detail="address space, files, threads, file size, core"),
    )


def enclose(order: Mapping[str, Any]) -> None:
    """Put up all walls around this process, for good.

    Args:
        order: ``readable``: the folders and files that it may read.

    Raises:
        OSError: one of them cannot be put up; the message begins with which.
    """
    readable = list(order["readable"])
    prctl("no new privileges", _NO_NEW_PRIVS, 1)
    namespaces.enter(readable)
    namespaces.drop_rights()
    prctl("ending with the parent", _PDEATHSIG, signal.SIGKILL)  # the kernel forgot it with the rights
    _limit_threads(order["threads"])
    landlock.restrict([*readable, *namespaces.DEVICES])
    seccomp.restrict()


def _limit_threads(count: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
