"""Full Python at ``kernel`` tries everything that raw hostile code can, and reaches nothing of the host.

Stopped by: isolation.lockdown, isolation.workspace, isolation.worker.environment. The whole corpus of hostile
snippets runs by `bench.isolation.hostile`.
"""

from __future__ import annotations

import ast
import errno
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from directory_worker import Worker, content

from agex.files import connect_fs
from agex.isolation import executor_of
from agex.isolation.kernel import missing
from agex.sandbox import Limits, Policy

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold: {missing()}")

CANARY = "canary-of-the-host-5150"

_ATTEMPTS = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *args):
    done = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(each) if type(each) is int else each for each in args])
    if done < 0:
        raise OSError(ctypes.get_errno(), "")
    return done

def refused(work):
    try:
        found = work()
    except OSError as error:
        return error.errno
    return f"done: {str(found)[:100]}"

path = ctypes.c_char_p
buffer = ctypes.create_string_buffer(4096)
found = {name: refused(work) for name, work in {
    "the file beside": lambda: open(SECRET_FILE).read(),
    "the file by a link": lambda: (os.symlink(SECRET_FILE, "out"), open("out").read()),
    "the file by openat2": lambda: call(437, -100, path(SECRET_FILE.encode()), buffer, 24),
    "writing beside": lambda: open(SECRET_FILE + ".new", "w"),
    "the root": lambda: os.listdir("/"),
    "processes": lambda: os.listdir("/proc"),
    "its parent's environment": lambda: open(f"/proc/{os.getppid()}/environ").read(),
    "its parent's memory": lambda: call(310, os.getppid() or 1, buffer, 1, buffer, 1, 0),
    "tracing its parent": lambda: call(101, 16, os.getppid() or 1, 0, 0),
    "a signal to the host": lambda: os.kill(HOST, 0),
    "a signal to all": lambda: os.kill(-1, 0),
    "the host's process by descriptor": lambda: os.pidfd_open(HOST),
    "TCP": lambda: socket.create_connection(("127.0.0.1", PORT), 1),
    "a socket of the machine": lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock"),
    "netlink": lambda: call(41, 16, 3, 0),
    "another name space": lambda: os.unshare(0x10000000) if hasattr(os, "unshare") else call(272, 0x10000000),
    "the host's name space": lambda: call(308, 3, 0),
    "mounting": lambda: call(165, path(b"none"), path(b"/tmp"), path(b"tmpfs"), 0, 0),
    "another root": lambda: os.chroot("/tmp"),
    "another user": lambda: os.setuid(0),
    "another program": lambda: os.execv("/bin/sh", ["sh"]),
    "a process in C": lambda: call(57),
    "clone": lambda: call(56, 17, 0, 0, 0, 0),
    "shared memory": lambda: call(29, 0, 4096, 0o1600),
    "a queue of messages": lambda: call(240, path(b"queue"), 0o102, 0o600, 0),
    "a file in memory": lambda: os.memfd_create("x"),
    "rings": lambda: call(425, 8, buffer),
    "page faults": lambda: call(323, 0),
    "programs of the kernel": lambda: call(321, 0, buffer, 64),
    "performance counters": lambda: call(298, buffer, 0, -1, -1, 0),
    "keys of the kernel": lambda: call(250, 0, -3, 0),
    "the kernel's log": lambda: call(103, 3, buffer, 4096),
    "its clock": lambda: call(227, 0, buffer),
    "a module of the kernel": lambda: call(175, buffer, 16, path(b"")),
}.items()}
print(found)
"""

_LINUX_X86 = pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the numbers of the calls are x86_64's"
)


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@_LINUX_X86
def test_nothing_of_the_host_is_reached(tmp_path, listener):
    (tmp_path / "secret").write_text(CANARY)
    given = {"SECRET_FILE": str(tmp_path / "secret"), "HOST": os.getpid(), "PORT": listener}
    with Worker(executor_of("kernel"), connect_fs(type="virtual")) as worker:
        worker.session.add(given)
        found = ast.literal_eval(worker.run(_ATTEMPTS).splitlines()[0])
    assert {name: told for name, told in found.items() if type(told) is not int or not told} == {}
    assert errno.EINTR not in found.values()
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_neither_the_environment_nor_another_task_is_in_its_memory(monkeypatch):
    monkeypatch.setenv("CANARY_KEY", CANARY)
    other: Any = executor_of("kernel").session(Policy.default(), Limits(), {"value": CANARY}, python="full")
    other.run("kept = value + '-of-another'; open('/tmp/left', 'w').write(kept)")
    with Worker(executor_of("kernel"), None) as worker:
        shown = worker.run("""
            import ctypes, gc, os
            print(os.environ.get("CANARY_KEY"), os.path.exists("/tmp/left"))
            half = "canary-of-", "the-host-"
            print([each for each in gc.get_objects() if type(each) is dict and "".join(half) + "5" in str(list(each.values()))])
            class Name(ctypes.Structure):
                _fields_ = [("text", ctypes.c_char_p)]
            environment, at, found = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ"), 0, []
            while environment[at]:
                found.append(environment[at].split(b"=")[0].decode())
                at += 1
            print([name for name in found if name == "CANARY_KEY"])
        """)
    other.close()
    assert shown == "None False\n[]\n[]\n"


def test_hostile_files_harm_nobody(tmp_path):
    (tmp_path / "secret").write_text(CANARY)
    files = connect_fs(type="virtual", max_size_mb=4)
    files.write("old.txt", "old")
    neighbours = connect_fs(type="virtual")
    executor = executor_of("kernel")
    with Worker(executor, files, seconds=30.0) as worker, Worker(executor, neighbours) as neighbour:
        shown = worker.run(f"""
            import os, threading
            def tried(work):
                try:
                    work()
                except OSError:
                    pass
            os.symlink({str(tmp_path / "secret")!r}, "out")
            os.symlink("../../../../../../.." + {str(tmp_path)!r}, "folder out")
            os.symlink("loop", "loop")
            tried(lambda: os.link("/etc/passwd", "hard"))
            tried(lambda: os.mkfifo("pipe"))
            tried(lambda: os.mknod("null", 0o20666, os.makedev(1, 3)))
            tried(lambda: os.truncate(os.open("huge", os.O_CREAT), 1 << 40))
            open("set", "w").close(); tried(lambda: os.chmod("set", 0o6777))
            open("closed", "w").write("closed"); os.chmod("closed", 0)
            for name in (b"line\\nend", b"\\xed\\xa0\\x80", b"\\xff", b"\\x1b]0;title\\x07", b"-rf", b"a" * 255, b" ", b".git"):
                tried(lambda: open(name, "w").close())
            # A name that changes its kind while the host walks.
            def swap():
                while True:
                    tried(lambda: os.rename("out", "swapped"))
                    tried(lambda: os.rename("swapped", "out"))
            threading.Thread(target=swap, daemon=True).start()
        """)
        assert neighbour.run("import os; print(os.listdir(), os.listdir('/tmp'))") == "[] []\n"
        again = worker.run("print(sorted(os.listdir())[:1])")
    kept = content(files)
    assert CANARY.encode() not in b"".join(each for each in kept.values() if each)
    assert {path: each for path, each in kept.items() if each} == {"old.txt": b"old", "closed": b"closed"}
    assert kept.keys() == {
        "old.txt",
        "set",
        "huge",
        "closed",
        "line\nend",
        "\x1b]0;title\x07",
        "-rf",
        "a" * 255,
        " ",
        ".git",
    }
    assert "it is a link" in shown
    assert "\n" not in shown.strip()
    assert "Traceback" not in again
    assert (tmp_path / "secret").read_text() == CANARY
