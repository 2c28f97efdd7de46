"""Raw hostile Python behind the kernel's walls, with the sandbox's guards and its second wall switched off.

Each attempt is made in this process or in a worker of level ``process`` first where that is harmless: an
attempt that fails everywhere shows nothing.

Stopped by: isolation.kernel.
"""

from __future__ import annotations

import os
import socket
import time

import pytest
from hostile import raw

from agex.errors import IsolationUnavailable
from agex.isolation import KernelExecutor
from agex.isolation.kernel import missing
from agex.isolation.lockdown import seccomp
from agex.isolation.lockdown.seccomp import program
from agex.sandbox import Limits, Policy
from agex.testing import check_executor

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold here: {missing()}")


@pytest.fixture(scope="module")
def kernel():
    made = KernelExecutor()
    yield made
    made.close()


def attempt(executor, function, *args, **limits):
    """Run a function in a worker's own process; give its result, or the error as text."""
    session = executor.session(raw(function), Limits(**{"seconds": 5.0, **limits}), {"args": list(args)})
    try:
        result = session.run("Raw.go(*args)")
        return result.echo if result.error is None else f"{type(result.error).__name__}: {result.error}"
    finally:
        session.close()


def test_the_kernel_is_a_level():
    check_executor(KernelExecutor)


def test_full_python_at_the_kernel_is_a_level():
    check_executor(KernelExecutor, python="full")


# -- files -------------------------------------------------------------------------------------


def read(path):
    with open(path) as file:
        return len(file.read())


def write(path):
    with open(path, "w") as file:
        return file.write("x")


def test_a_file_of_the_host_cannot_be_read(kernel, executor, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("12345")
    assert attempt(executor, read, str(secret)) == "5"
    assert "FileNotFoundError" in attempt(kernel, read, str(secret))


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/1/cmdline", "/sys/kernel"]
)
def test_the_systems_files_cannot_be_read(kernel, path):
    assert "FileNotFoundError" in attempt(kernel, read, path)


def test_what_is_not_to_be_read_cannot_even_be_seen(kernel, executor, tmp_path):
    def look(path):
        return os.path.lexists(path)

    assert attempt(executor, look, str(tmp_path)) == "True"
    assert attempt(kernel, look, str(tmp_path)) == "False"


def test_the_root_holds_the_installation_alone(kernel):
    def look():
        return sorted(os.listdir("/"))

    assert "Errno 13" in attempt(kernel, look) or "PermissionError" in attempt(kernel, look)


def test_no_file_can_be_written(kernel, executor, tmp_path):
    assert attempt(executor, write, str(tmp_path / "new")) == "1"
    for path in (str(tmp_path / "new2"), "/tmp/x", "/x", "/dev/shm/x", "x", "/dev/null/../x"):
        assert "Error" in attempt(kernel, write, path)
    assert not (tmp_path / "new2").exists()


def test_a_file_that_can_be_read_cannot_be_changed(kernel):
    def change():
        import json

        done = []
        for work in (
            lambda path: os.open(path, os.O_RDWR),
            lambda path: os.open(path, os.O_WRONLY | os.O_TRUNC),
            lambda path: os.truncate(path, 0),
            lambda path: os.chmod(path, 0o777),
            lambda path: os.chown(path, 0, 0),
            os.utime,
            os.unlink,
            lambda path: os.rename(path, path + "x"),
            lambda path: os.link(path, path + "x"),
            lambda path: os.symlink(path, path + "x"),
            lambda path: os.mkdir(path + "x"),
            lambda path: os.mkfifo(path + "x"),
            lambda path: os.mknod(path + "x"),
            lambda path: os.setxattr(path, "user.x", b"x"),
        ):
            try:
                work(json.__file__)
            except OSError:
                continue
            done.append(repr(work))
        return done

    assert attempt(kernel, change) == "[]"


def test_no_disk_and_no_anonymous_file_can_be_filled(kernel):
    def fill():
        return os.memfd_create("x")

    assert "PermissionError" in attempt(kernel, fill)


# -- network -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET6, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
        (socket.AF_UNIX, socket.SOCK_DGRAM),
        (socket.AF_NETLINK, socket.SOCK_RAW),
        (socket.AF_PACKET, socket.SOCK_RAW),
        (socket.AF_VSOCK, socket.SOCK_STREAM),
    ],
)
def test_no_socket_can_be_made(kernel, family, kind):
    def make(family, kind):
        import _socket

        return _socket.socket(family, kind).fileno()

    assert "PermissionError" in attempt(kernel, make, int(family), int(kind))


def test_only_connected_pairs_can_be_made(kernel):
    def pairs(kind):
        import _socket

        return [one.fileno() > 0 for one in _socket.socketpair(_socket.AF_UNIX, kind)]

    assert attempt(kernel, pairs, int(socket.SOCK_STREAM)) == "[True, True]"
    assert "PermissionError" in attempt(kernel, pairs, int(socket.SOCK_DGRAM))


def test_its_own_connection_cannot_be_pointed_elsewhere(kernel):
    def connect():
        import _socket

        return _socket.socket(fileno=os.dup(3)).connect("/tmp/x")

    assert "PermissionError" in attempt(kernel, connect)


# -- processes ---------------------------------------------------------------------------------


def test_no_process_can_be_started(kernel, executor):
    def fork():
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        return os.waitpid(pid, 0)[1]

    assert attempt(executor, fork) == "0"
    assert "PermissionError" in attempt(kernel, fork)


@pytest.mark.parametrize(
    "name", ["execv", "vfork", "posix_spawn", "unshare", "setns", "mount", "ptrace", "setuid", "chroot"]
)
def test_no_call_that_gains_or_becomes_something_is_allowed(kernel, name):
    def call(name):
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        numbers = {
            "execv": (59, b"/bin/true", 0, 0), "vfork": (58,), "posix_spawn": (59, b"/bin/true", 0, 0),
            "unshare": (272, 0x10000000), "setns": (308, 3, 0), "mount": (165, b"a", b"/", b"tmpfs", 0, 0),
            "ptrace": (101, 16, 1, 0, 0), "setuid": (105, 0), "chroot": (161, b"/"),
        }  # fmt: skip
        result = libc.syscall(*numbers[name])
        return result, ctypes.get_errno()

    assert attempt(kernel, call, name) == "(-1, 1)"


def test_it_has_no_rights_and_cannot_gain_any(kernel):
    def rights():
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        return os.getuid() != 0, libc.prctl(39, 0, 0, 0, 0), libc.prctl(23, 21, 0, 0, 0)

    assert attempt(kernel, rights) == "(True, -1, -1)"  # nobody; not even asking is allowed


def test_no_other_process_can_be_signalled_or_seen(kernel):
    def signal_all(host):
        seen = []
        for pid in {1, 2, 3, -1, 0, host} - {os.getpid()}:  # itself it may
            try:
                os.kill(pid, 0)
            except OSError:
                continue
            seen.append(pid)
        return seen

    assert attempt(kernel, signal_all, os.getpid()) == "[]"


def test_no_descriptor_can_be_made_to_send_signals(kernel):
    def own():
        import fcntl

        return fcntl.fcntl(3, fcntl.F_SETOWN, 1)

    assert "PermissionError" in attempt(kernel, own)


def test_the_kernels_other_doors_are_shut(kernel):
    def knock():
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        numbers = {
            "io_uring_setup": 425, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298, "keyctl": 250,
            "add_key": 248, "shmget": 29, "msgget": 68, "semget": 64, "mq_open": 240, "process_vm_readv": 310,
            "pidfd_open": 434, "kexec_load": 246, "init_module": 175, "reboot": 169, "swapon": 167,
            "open_by_handle_at": 304, "name_to_handle_at": 303, "fanotify_init": 300, "inotify_init1": 294,
            "personality": 135, "quotactl": 179, "acct": 163, "settimeofday": 164, "seccomp": 317,
        }  # fmt: skip
        return [name for name, number in numbers.items() if libc.syscall(number, 0, 0, 0, 0, 0) != -1]

    assert attempt(kernel, knock) == "[]"


# -- resources ---------------------------------------------------------------------------------


def test_memory_ends_even_where_no_limit_was_given(kernel):
    def take():
        return len([bytes(1 << 28) for _ in range(64)])

    assert "out of memory" in attempt(kernel, take)


def test_threads_end(kernel):
    def start():
        import _thread
        import threading

        gate = threading.Event()
        count = 0
        try:
            for _ in range(5_000):
                _thread.start_new_thread(gate.wait, ())
                count += 1
        except RuntimeError:
            pass
        gate.set()
        return count < 1000

    assert attempt(kernel, start) == "True"


def test_descriptors_end(kernel):
    def take():
        return [os.pipe() for _ in range(1000)]

    assert "Too many open files" in attempt(kernel, take)


def test_a_worker_that_does_not_end_is_killed(kernel):
    started = time.monotonic()
    session = kernel.session(Policy.default(), Limits(seconds=0.3), {})
    assert "was killed" in str(session.run("sum(range(10 ** 13))").error)
    assert time.monotonic() - started < 5
    session.close()


# -- what the level says of itself -------------------------------------------------------------


def test_a_result_lists_what_held(kernel):
    session = kernel.session(Policy.default(), Limits(), {})
    walls = session.run("1").enforcement.walls
    session.close()
    assert [wall.partition(" ")[0] for wall in walls] == [
        *("process", "namespaces", "landlock", "seccomp", "no_new_privs", "rlimits")
    ]


def test_a_system_without_a_wall_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("agex.isolation.lockdown.landlock.abi", lambda: 0)
    with pytest.raises(IsolationUnavailable, match=r"Landlock ABI 3 \(here 0\)"):
        KernelExecutor()


def test_a_wall_that_cannot_be_put_up_is_an_error_and_no_weaker_run(monkeypatch):
    executor = KernelExecutor()
    monkeypatch.setattr("agex.isolation.kernel.executor.installation", lambda: ["/no/such/folder"])
    session = executor.session(Policy.default(), Limits(), {})
    with pytest.raises(IsolationUnavailable, match="could not be confined"):
        session.run("1")
    executor.close()


@pytest.mark.parametrize("architecture", seccomp.ARCHITECTURES)
def test_a_filter_is_short_enough_and_its_jumps_stay_in_it(architecture):
    import struct

    code = [
        struct.unpack_from("<HBBI", program(architecture, 1), at)
        for at in range(0, len(program(architecture, 1)), 8)
    ]
    assert len(code) < 4096
    for at, (kind, yes, no, _) in enumerate(code):
        assert kind != 0x15 or at + 1 + max(yes, no) < len(code)
