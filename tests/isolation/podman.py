"""A podman service for tests, on a unix socket, with storage of its own: nothing of the machine is touched."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["missing", "service"]

_CONTAINERS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "none"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
exit_command_delay = 0
"""
_STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""


def missing() -> str:
    """Say what is lacking for a service; empty where nothing is."""
    lacks = [name for name in ("podman", "runc") if shutil.which(name) is None]
    if lacks:
        return f"{' and '.join(lacks)} not installed"
    return "" if os.geteuid() == 0 else "podman's service is started as root here"


@contextlib.contextmanager
def service(folder: Path) -> Iterator[str]:
    """Run a service; give its address."""
    (folder / "containers.conf").write_text(_CONTAINERS)
    (folder / "storage.conf").write_text(_STORAGE.format(folder=folder))
    address = f"{folder}/podman.sock"
    settings = {
        "CONTAINERS_CONF": f"{folder}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
    }
    command = ["podman", "system", "service", "--time=0", f"unix://{address}"]
    with (folder / "log").open("w") as log:
        # In its own folder: conmon leaves a file where it stands when a container runs out of memory.
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log
        )
    try:
        _wait(address, process)
        yield f"unix://{address}"
    finally:
        process.terminate()
        process.wait()
        _wait_for_the_last(folder)
        _unmount(folder)


def _wait_for_the_last(folder: Path) -> None:
    """Wait for what cleans up after each container: it mounts the storage once more, and is not the service's."""
    until = time.monotonic() + 30
    while any(str(folder).encode() in _command(process) for process in Path("/proc").glob("[0-9]*")):
        if time.monotonic() > until:
            raise RuntimeError("containers of podman's service are still there")
        time.sleep(0.05)


def _command(process: Path) -> bytes:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        return (process / "cmdline").read_bytes()
    return b""


def _unmount(folder: Path) -> None:
    """Unmount all that is left below a folder, the innermost first."""
    lines = Path("/proc/mounts").read_text().splitlines()
    places = [place for line in lines if (place := line.split()[1]).startswith(f"{folder}/")]
    for place in sorted(places, key=len, reverse=True):
        subprocess.run(["umount", "-l", place], check=True)


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(address)
            return
        os.sched_yield()
    raise RuntimeError("podman's service does not answer")
