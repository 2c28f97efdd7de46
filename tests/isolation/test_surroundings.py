"""Raw Python in a worker looks for what the host has and did not give: variables, paths, descriptors, memory.

Stopped by: isolation.kernel, isolation.process, isolation.worker.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import types

import pytest
from hostile import attempt, raw

from agex.isolation import KernelExecutor, ProcessExecutor
from agex.isolation.kernel import missing
from agex.sandbox import Limits, Policy

CANARY = "canary-of-the-host-7391"
SECRET = "secret-of-another-task-5520"

LEVELS = [
    ProcessExecutor,
    pytest.param(
        KernelExecutor,
        marks=pytest.mark.skipif(bool(missing()), reason=f"the level does not hold here: {missing()}"),
    ),
]


@pytest.fixture(scope="module", params=LEVELS, ids=["process", "kernel"])
def walled(request):
    """An executor whose zygote is started by a host with a canary in each of its surroundings."""
    patch = pytest.MonkeyPatch()
    patch.setenv("API_KEY", CANARY)
    patch.setenv("LC_SECRET", CANARY)
    patch.setenv("PATH", f"{os.environ['PATH']}:/{CANARY}")
    patch.setenv("PYTHONSTARTUP", f"/{CANARY}")
    patch.setenv("TZ", "Asia/Kathmandu")
    patch.setenv("LC_ALL", "C.UTF-8")
    patch.syspath_prepend(f"/{CANARY}")
    mask, mode = os.umask(0o027), signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGUSR1})
    handlers = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGHUP, signal.SIGTERM)}
    made = request.param()
    session = made.session(Policy.default(), Limits(seconds=5.0), {})
    session.open()
    session.close()
    os.umask(mask)
    signal.pthread_sigmask(signal.SIG_SETMASK, mode)
    for each, handler in handlers.items():
        signal.signal(each, handler)
    patch.undo()
    yield made
    made.close()


def variables():
    return sorted(os.environ)


def from_libc():
    import ctypes

    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    return [getenv(name) for name in (b"API_KEY", b"LC_SECRET", b"HOME", b"PATH", b"PWD")]


def beside_the_environment():
    """Read the page of the stack that the kernel wrote arguments and variables to."""
    import ctypes

    start = ctypes.c_char_p.in_dll(ctypes.CDLL(None), "program_invocation_name")
    address = ctypes.cast(start, ctypes.c_void_p).value
    room = 4096 - address % 4096
    return ctypes.string_at(address, room)


def arguments():
    return sys.argv, sys.orig_argv


def own_files():
    found = []
    for name in ("environ", "cmdline", "cwd"):
        try:
            path = f"/proc/self/{name}"
            found.append(os.readlink(path) if name == "cwd" else open(path).read())  # noqa: SIM115
        except OSError as error:
            found.append(type(error).__name__)
    return found


def paths_to_import():
    return sys.path, [repr(vars(each)) for each in sys.path_importer_cache.values() if each is not None]


@pytest.mark.parametrize(
    "look", [variables, from_libc, beside_the_environment, arguments, own_files], ids=lambda f: f.__name__
)
def test_the_hosts_variables_and_paths_are_nowhere(walled, look):
    found = attempt(walled, look)
    assert CANARY not in found
    assert "Error" not in found.replace("FileNotFoundError", "")
    assert "API_KEY" not in found
    assert "PATH" not in found


def test_locale_and_time_zone_are_given(walled):
    def given():
        import time

        return os.environ.get("LC_ALL"), os.environ.get("TZ"), time.timezone

    assert attempt(walled, given) == "('C.UTF-8', 'Asia/Kathmandu', -20700)"


def test_a_path_is_no_time_zone(monkeypatch):
    monkeypatch.setenv("TZ", f":/{CANARY}/zone")
    made = ProcessExecutor()
    assert CANARY not in attempt(made, variables)
    made.close()


def test_the_working_folder_is_the_root(walled):
    assert attempt(walled, os.getcwd) == "'/'"


def test_the_name_of_the_machine_is_not_told(walled):
    def names():
        import socket

        return os.uname().nodename, socket.gethostname()

    if walled.level == "kernel":
        assert attempt(walled, names) == "('worker', 'worker')"
    else:  # it has the host's rights, and its machine
        assert os.uname().nodename in attempt(walled, names)


def test_no_signal_is_blocked_or_ignored_because_the_host_did_so(walled):
    def signals():
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        ignored = {n for n in signal.valid_signals() if signal.getsignal(n) == signal.SIG_IGN}
        return sorted(blocked), sorted(ignored - {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT})

    assert attempt(walled, signals) == "([], [])"


def test_files_that_it_makes_are_its_own(walled):
    def mask():
        import ctypes

        return ctypes.CDLL(None).umask(0o022)

    found = attempt(walled, mask)
    assert found == str(0o077) or "-1" in found  # at kernel it may not even ask


def test_it_has_no_terminal_and_no_group_of_the_hosts(walled):
    def reach():
        try:
            os.open("/dev/tty", os.O_RDWR)
        except OSError:
            return os.getsid(0) == os.getpid() if hasattr(os, "getsid") else True
        return False

    found = attempt(walled, reach)
    assert found == "True" or "PermissionError" in found
    if walled.level == "kernel" and os.geteuid() == 0:
        groups = attempt(walled, os.getgroups)
        assert groups == "[]" or "PermissionError" in groups


def test_it_has_no_descriptor_but_its_connection(walled):
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    os.set_inheritable(writer, True)

    def descriptors():
        found = []
        for number in range(256):
            try:
                found.append((number, os.fstat(number).st_mode >> 12))
            except OSError:
                continue
        return found

    assert attempt(walled, descriptors) == "[(0, 2), (1, 2), (2, 2), (3, 12)]"
    os.close(reader)
    os.close(writer)


def in_memory(mark):
    """Find texts and bytes of the interpreter that hold a mark, whatever holds them."""
    found, seen, queue = [], set(), [*gc.get_objects(), *sys.modules.values()]
    gc.unfreeze()
    queue += gc.get_objects()
    while queue:
        one = queue.pop()
        if id(one) in seen or isinstance(one, types.FrameType):
            continue
        seen.add(id(one))
        if type(one) in (str, bytes):
            if (mark if type(one) is str else mark.encode()) in one and len(one) != len(mark):
                found.append(one[:80])
        else:
            queue += gc.get_referents(one)
    return found


def test_a_worker_knows_nothing_of_other_policies_of_its_host(walled, tmp_path, monkeypatch):
    (tmp_path / "others_module.py").write_text(f"KEPT = 'x-{SECRET}'\nclass Other:\n    note = KEPT\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import others_module

    def note():
        """Return nothing: -secret-of-another-task-5520-."""

    policy = Policy.default()
    policy.module(others_module)
    policy.fn(note, name="note_of_" + SECRET.replace("-", "_"))
    other = walled.session(policy, Limits(seconds=5.0), {"value": "x-" + SECRET})
    assert other.run("import others_module; others_module.KEPT").echo == f"'x-{SECRET}'"
    assert "x-" in attempt(walled, in_memory, SECRET, policy=raw(in_memory, also=policy), seconds=30.0)
    underscored = SECRET.replace("-", "_")
    assert attempt(walled, in_memory, SECRET, seconds=30.0) == "[]"
    assert attempt(walled, in_memory, "note_of_" + underscored, seconds=30.0) == "[]"
    assert "others_module" not in attempt(walled, lambda: [*sys.modules])
    assert attempt(walled, paths_to_import).count("others_module") == 0 or walled.level == "process"
    other.close()


def test_folders_that_cannot_be_read_are_not_even_named():
    if missing():
        pytest.skip("the level does not hold here")
    made = KernelExecutor()
    sys.path.insert(0, f"/{CANARY}")
    try:
        assert CANARY not in attempt(made, paths_to_import)
    finally:
        sys.path.remove(f"/{CANARY}")
        made.close()
