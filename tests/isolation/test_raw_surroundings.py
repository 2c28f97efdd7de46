"""Raw Python in a walled worker finds nothing of its host, at `kernel` and at `container`.

Stopped by: isolation.lockdown, isolation.container, isolation.worker.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import podman
import pytest
from hostile import attempt, raw

from agex.isolation import ContainerExecutor, Executor, KernelExecutor
from agex.isolation.kernel import missing
from agex.sandbox import Limits, Policy

CANARY = "canary-of-the-host-8264"
SECRET = "secret-of-another-task-9153"
NO_KERNEL = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold here: {missing()}")
NO_PODMAN = pytest.mark.skipif(bool(podman.missing()), reason=f"no container engine: {podman.missing()}")
SDK = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # the Docker SDK's sockets


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("kernel", marks=NO_KERNEL),
        pytest.param("container", marks=[NO_PODMAN, pytest.mark.slow, SDK]),
    ],
)
def walled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    """Start an executor whose host has a canary in its variables, its paths and another process's arguments."""
    patch = pytest.MonkeyPatch()
    with contextlib.ExitStack() as stack:
        address = ""
        if request.param == "container":
            address = stack.enter_context(podman.service(tmp_path_factory.mktemp("podman")))
        folder = tmp_path_factory.mktemp(CANARY)
        patch.setenv("API_KEY", CANARY)
        patch.setenv("PYTHONSTARTUP", f"/{CANARY}")
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        stack.callback(patch.undo)
        stack.callback(os.umask, os.umask(0o027))
        waits = [sys.executable, "-c", "input()", CANARY]
        other = stack.enter_context(subprocess.Popen(waits, stdin=subprocess.PIPE))
        stack.callback(other.kill)
        made = KernelExecutor() if request.param == "kernel" else ContainerExecutor(address)
        stack.callback(made.close)
        yield made


def variables() -> object:
    return dict(os.environ)


def variables_of_libc() -> object:
    import ctypes

    libc = ctypes.CDLL(None)
    listed = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    found, n = [], 0
    while listed and listed[n] is not None:
        found.append(listed[n])
        n += 1
    libc.getenv.restype = ctypes.c_char_p
    return found, libc.getenv(b"API_KEY"), libc.getenv(b"PYTHONSTARTUP")


def files_of_processes() -> object:
    """Read what the system says of each process, and of the one that all others come from."""
    found = []
    listed = os.listdir("/proc") if os.path.isdir("/proc/self") else []
    pids = {"self", str(os.getppid()), *map(str, range(1, 100)), *filter(str.isdigit, listed)}
    for pid in pids:
        for name in ("environ", "cmdline", "cwd", "root", "exe", "comm", "maps", "mountinfo"):
            path = f"/proc/{pid}/{name}"
            with contextlib.suppress(OSError):
                found.append(os.readlink(path) if os.path.islink(path) else open(path, "rb").read())  # noqa: SIM115
    return found


def folders() -> object:
    import glob

    return os.getcwd(), os.environ.get("PWD"), sys.path, sys.argv, sys.orig_argv, glob.glob("/tmp/*")


@pytest.mark.parametrize(
    "look", [variables, variables_of_libc, files_of_processes, folders], ids=lambda f: f.__name__
)
def test_the_hosts_canary_is_nowhere(walled: Executor, look: Callable[[], object]) -> None:
    found = attempt(walled, look, seconds=30.0)
    assert found is not None
    assert CANARY not in found
    assert "API_KEY" not in found
    assert not found.startswith(("EvalError", "WorkerLost"))


def test_no_process_of_the_host_is_seen(walled: Executor) -> None:
    def seen() -> list[str]:
        return [name for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []

    numbers = attempt(walled, seen)
    assert numbers is not None
    assert len(numbers.split(",")) <= 4
    assert f"'{os.getpid()}'" not in numbers


def test_it_stands_at_the_root_and_has_a_mask_of_its_own(walled: Executor) -> None:
    def stands() -> object:
        import ctypes

        return os.getcwd(), ctypes.CDLL(None).umask(0o022) == 0o027

    assert attempt(walled, stands) == "('/', False)"


OPEN = {
    "kernel": "[(0, 2), (1, 2), (2, 2), (3, 12)]",  # its connection is a socket
    "container": "[(0, 2), (1, 2), (2, 2), (3, 1), (4, 1), (5, 2)]",  # or two pipes, beside the null device
}


def test_no_file_of_the_host_is_open_in_it(walled: Executor, tmp_path: Path) -> None:
    def opened() -> object:
        found = []
        for number in range(256):
            with contextlib.suppress(OSError):
                found.append((number, os.fstat(number).st_mode >> 12))
        return found

    with (tmp_path / CANARY).open("w") as file:
        os.set_inheritable(file.fileno(), True)
        assert attempt(walled, opened) == OPEN[walled.level]


def test_nothing_of_an_earlier_task_is_in_its_memory(walled: Executor) -> None:
    def remembered(first: str, second: str) -> object:
        """Find texts with a mark, and read all of the memory where the system lets it be read."""
        import gc
        import re

        pattern = f"[{first[0]}]{first[1:]}{second}[-]kept".encode()  # which is not itself what it finds
        mark = first + second
        found = [
            each for each in gc.get_objects() if type(each) is dict and mark in repr(list(each.values()))
        ]
        with contextlib.suppress(OSError):
            memory = open("/proc/self/mem", "rb", 0)  # noqa: SIM115
            for line in open("/proc/self/maps"):  # noqa: SIM115
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    memory.seek(start)
                    found += re.findall(pattern, memory.read(end - start))
        return len(found)

    policy = Policy.default()
    other = walled.session(policy, Limits(seconds=30.0), {"value": SECRET + "-kept"})
    assert other.run("value[-4:]").echo == "'kept'"
    other.close()
    half = len(SECRET) // 2
    found = attempt(walled, remembered, SECRET[:half], SECRET[half:], policy=raw(remembered), seconds=30.0)
    assert found == "0"
