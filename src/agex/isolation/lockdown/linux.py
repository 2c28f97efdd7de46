"""Confinement of a worker on Linux: apply all mechanisms in order, and name those that are missing."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from agex.isolation.executor import Wall
from agex.isolation.lockdown import landlock, namespaces, seccomp
from agex.isolation.lockdown.own_directory import OwnDirectory
from agex.isolation.lockdown.syscalls import machine, prctl

__all__ = ["LEAST_LANDLOCK", "enclose", "missing", "walls"]

_PDEATHSIG, _NO_NEW_PRIVS = 1, 38

LEAST_LANDLOCK = 3
"""The version that also forbids to cut files short (Linux 6.2). Other mechanisms close the network, too."""


def missing() -> list[str]:
    """Return what this system lacks, each with a remedy; nothing where the level holds."""
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
    """Return the mechanisms that confine a worker."""
    return (
        Wall(name="namespaces", detail="user, pid, mount, network, ipc, uts, cgroup"),
        Wall(name="landlock", detail=f"ABI {landlock.abi()}"),
        Wall(name="seccomp", detail=f"allowed calls only, {machine()}"),
        Wall(name="no_new_privs", detail="no capabilities"),
        Wall(name="rlimits", detail="address space, files, threads, file size, core"),
    )


def enclose(order: Mapping[str, Any], give: Callable[[int], None] | None = None) -> None:
    """Confine this process by all mechanisms, for good.

    Args:
        order: ``readable``: the folders and files that it may read; ``directory``: how the one that it may
            write in is mounted, if it has one.
        give: gets a descriptor of the upper directory of that one, which is closed here afterwards.

    Raises:
        OSError: one of them failed; the message begins with its name.
    """
    readable = list(order["readable"])
    directory = OwnDirectory(**order["directory"]) if order.get("directory") else None
    prctl("no new privileges", _NO_NEW_PRIVS, 1)
    namespaces.enter(readable, None if directory is None else directory.furnish)
    namespaces.drop_rights()
    prctl("ending with the parent", _PDEATHSIG, signal.SIGKILL)  # the kernel forgot it with the rights
    _limit_threads(order["threads"])
    readable += namespaces.DEVICES
    if directory is None:
        landlock.restrict(readable)
    else:
        assert give is not None, "the host reads the directory that it orders"
        directory.give(give)
        landlock.restrict([*readable, *directory.readable], directory.writable)
        os.chdir(directory.path)
    seccomp.restrict(writes=directory is not None)


def _limit_threads(count: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
