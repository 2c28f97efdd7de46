"""Workers die: at their deadline, by their own doing, or with their host. Nothing is left of them.

Stopped by: isolation.process, isolation.worker.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

from agex.errors import EvalError, IsolationUnavailable, SandboxError
from agex.isolation import ProcessExecutor
from agex.isolation.process.subprocess_executor import PipedExecutor
from agex.isolation.wire.codec import CannotCross
from agex.isolation.worker.host_session import RemoteSession
from agex.sandbox import Limits, Policy, Sandbox

BUSY_IN_C = "sum(range(10 ** 13))"


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(is_so, seconds: float = 5.0) -> bool:
    """Ask until it is so: the kernel ends processes when it gets to it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_so():
            return True
        os.sched_yield()
    return False


def pid_of(session: RemoteSession) -> int:
    return session._connection.worker.pid


def native(name: str, function) -> Policy:
    """A policy under which the worker's own process runs a function: for what no guest could say."""

    def go():
        from agex.sandbox.runtime.context import CURRENT

        token = CURRENT.set(None)  # past the second wall
        try:
            return function()
        finally:
            CURRENT.reset(token)

    policy = Policy.default()
    policy.cls(type(name, (), {"__module__": "__main__", "go": staticmethod(go)}), name=name)
    return policy


def test_a_call_into_c_that_never_looks_is_killed_within_a_second_of_its_deadline(executor):
    session = executor.session(Policy.default(), Limits(seconds=0.3), {})
    session.run("pass")  # starts the worker: that is no time of the code
    started = time.monotonic()
    result = session.run(f"print('before')\n{BUSY_IN_C}")
    took = time.monotonic() - started
    assert isinstance(result.error, EvalError)
    assert "ran longer than 0.3 s and did not stop, so it was killed" in str(result.error)
    assert 0.3 <= took < 1.3
    assert result.enforcement.time == "kill"
    session.close()


def test_what_was_printed_before_a_kill_is_kept(executor):
    session = executor.session(Policy.default(), Limits(seconds=0.3), {})
    text = "x" * 5000
    assert session.run(f"print({text!r})\n{BUSY_IN_C}").stdout.startswith(text)
    session.close()


def test_after_a_kill_the_variables_are_those_that_were_given_back_last(executor):
    session = executor.session(Policy.default(), Limits(seconds=0.3), {"given": [1]})
    session.run("a = [1]\ngiven.append(2)")
    assert sorted(session.namespace) == ["a", "given"]
    session.run(f"a.append(2)\n{BUSY_IN_C}")
    assert session.run("a, given").echo == "([1], [1, 2])"
    session.close()


def test_a_crash_in_c_is_an_error_that_names_the_signal(executor):
    def go():
        import ctypes

        ctypes.string_at(0)

    session = executor.session(native("Crash", go), Limits(seconds=5.0), {})
    session.run("x = 1")
    result = session.run("Crash.go()")
    assert "killed by SIGSEGV" in str(result.error)
    session.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_worker_that_somebody_kills_is_an_error_and_the_next_run_works(session, number):
    session.run("x = 1")
    os.kill(pid_of(session), number)
    result = session.run("x")
    assert f"killed by {number.name}" in str(result.error)
    assert session.run("rows").echo == "[1]"


def test_a_worker_that_somebody_stops_is_killed_at_the_deadline(executor):
    session = executor.session(Policy.default(), Limits(seconds=0.3), {})
    session.run("x = 1")
    os.kill(pid_of(session), signal.SIGSTOP)
    assert "was killed" in str(session.run("x").error)
    assert session.run("1").echo == "1"
    session.close()


def test_a_worker_that_is_stopped_while_it_gives_back_variables_is_not_waited_for(executor, monkeypatch):
    monkeypatch.setattr("agex.isolation.worker.connection.CHORES", 0.2)
    session = executor.session(Policy.default(), Limits(seconds=0.3), {"rows": [1]})
    session.run("rows.append(2)")
    os.kill(pid_of(session), signal.SIGSTOP)
    with pytest.raises(EvalError, match=r"did not answer for 0\.3 s, so it was killed"):
        _ = session.namespace
    assert session.run("rows").echo == "[1]"
    session.close()


def test_memory_has_a_limit_of_its_own(executor):
    session = executor.session(Policy.default(), Limits(seconds=5.0, memory_mb=64), {})
    result = session.run("x = bytearray(10 ** 9)")
    assert "out of memory" in str(result.error)
    assert result.enforcement.memory
    assert session.run("len(bytearray(10 ** 7))").echo == "10000000"
    session.close()


def test_open_files_have_a_limit_of_their_own(executor):
    def go():
        return [os.pipe() for _ in range(100)]

    session = executor.session(native("Files", go), Limits(seconds=5.0, open_files=20), {})
    assert "Too many open files" in str(session.run("Files.go()").error)
    session.close()


def test_a_run_is_ended_from_another_thread_even_in_c(executor):
    class Ending(BaseException):
        pass

    ending = Ending()
    policy = Policy.default()
    begun = threading.Event()
    policy.fn(begun.set, name="begin")
    session = executor.session(policy, Limits(seconds=30.0), {})
    waiter = threading.Thread(target=lambda: begun.wait() and session.interrupt(ending))
    waiter.start()
    result = session.run(f"begin()\n{BUSY_IN_C}")
    waiter.join()
    assert result.stopped is ending
    session.close()


def test_a_closed_session_leaves_no_process(executor):
    session = executor.session(Policy.default(), Limits(), {})
    session.open()
    pid = pid_of(session)
    session.close()
    assert eventually(lambda: not is_there(pid))
    with pytest.raises(SandboxError, match="closed"):
        session.run("1")


def test_a_session_that_nobody_has_any_more_leaves_no_process(executor):
    session = executor.session(Policy.default(), Limits(), {})
    session.open()
    pid = pid_of(session)
    del session
    import gc

    gc.collect()
    assert eventually(lambda: not is_there(pid))


def test_what_a_worker_started_ends_with_it(executor):
    def go():
        pid = os.fork()
        if pid == 0:
            signal.pause()
        return pid

    session = executor.session(native("Fork", go), Limits(seconds=5.0), {})
    result = session.run("Fork.go()")
    assert is_there(int(result.echo))
    session.close()
    assert eventually(lambda: not is_there(int(result.echo)))


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_a_worker_is_started_though_a_zygote_of_it_was_killed(generation: int):
    executor = ProcessExecutor()
    policy = Policy.default()
    session = executor.session(policy, Limits(seconds=5.0), {})
    session.run("pass")
    worker = pid = pid_of(session)
    for _ in range(generation):
        pid = int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not is_there(worker))
    assert executor.session(policy, Limits(seconds=5.0), {}).run("1 + 1").echo == "2"
    executor.close()


def test_a_zygote_that_is_killed_takes_its_workers_along_and_another_one_is_started():
    executor = ProcessExecutor()
    session = executor.session(Policy.default(), Limits(seconds=5.0), {"rows": [1]})
    session.run("x = 1")
    zygote, worker = executor._launcher.pid, pid_of(session)
    os.kill(zygote, signal.SIGKILL)
    assert eventually(lambda: not is_there(worker))
    assert session.run("1").error is not None
    assert session.run("rows").echo == "[1]"
    assert executor._launcher.pid != zygote
    session.close()
    executor.close()


_HOST = """
import os, signal, sys
from agex.isolation import ProcessExecutor
from agex.sandbox import Limits, Policy, Sandbox
executor = ProcessExecutor()
session = executor.session(Policy.default(), Limits(seconds=60.0), {})
session.open()
print(executor._launcher.pid, session._connection.worker.pid, flush=True)
session.run("sum(range(10 ** 13))")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_host_that_dies_takes_its_workers_along(number):
    host = subprocess.Popen(
        [sys.executable, "-c", _HOST], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    zygote, worker = map(int, host.stdout.readline().split())
    host.send_signal(number)
    host.wait()
    host.stdout.close()
    host.stderr.close()
    assert eventually(lambda: not is_there(worker) and not is_there(zygote))


def test_a_host_that_forks_does_not_keep_the_workers_alive():
    code = _HOST.replace(
        'session.run("sum(range(10 ** 13))")',
        "pid = os.fork()\nif pid == 0:\n    signal.pause()\nprint(pid, flush=True)\nos._exit(0)",
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    zygote, worker = map(int, host.stdout.readline().split())
    child = int(host.stdout.readline())
    try:
        host.wait()
        assert eventually(lambda: not is_there(worker) and not is_there(zygote))
    finally:
        os.kill(child, signal.SIGKILL)
        host.stdout.close()


def test_what_cannot_cross_is_named_before_anything_runs(executor):
    import os.path

    session = executor.session(Policy.default(), Limits(), {"rows": [1, {"m": os.path}]})
    with pytest.raises(
        CannotCross, match=r"rows\[1\]\['m'\] \(module\) cannot be used at isolation='process'"
    ):
        session.open()
    session.close()


def test_what_cannot_be_sent_is_an_error_in_the_guests_code(executor):
    policy = Policy.default()
    policy.fn(lambda value: value, name="give")
    session = executor.session(policy, Limits(seconds=5.0), {})
    result = session.run("class Mine: pass\ngive([Mine()])")
    assert str(result.error).startswith("an argument")
    assert "Mine" in str(result.error)
    session.close()


def test_a_module_that_a_worker_cannot_have_is_an_error_that_says_so(executor, tmp_path, monkeypatch):
    source = "import os\nif 'ONLY_HERE' not in os.environ: raise ImportError('not in a worker')"
    (tmp_path / "only_here.py").write_text(source)
    monkeypatch.setenv("ONLY_HERE", "yes")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "only_here", raising=False)
    policy = Policy.default()
    policy.module(importlib.import_module("only_here"))
    session = executor.session(policy, Limits(), {})
    with pytest.raises(IsolationUnavailable, match=r"only_here.*not in a worker"):
        session.open()


@pytest.mark.parametrize("level", [ProcessExecutor, PipedExecutor])
def test_a_worker_that_is_garbage_ends_while_guest_code_runs(level):
    executor = level()
    pids = []

    class Held:
        """Has the only reference to a worker, and is the guest's to drop."""

    def hold():
        """Start a worker."""
        session = executor.session(Policy.default(), Limits(seconds=5.0), {})
        session.open()
        held = Held()
        held.worker, session._connection.worker = session._connection.worker, None
        pids.append(held.worker._process.pid if level is PipedExecutor else held.worker.pid)
        return held

    policy = Policy.default()
    policy.fn(hold)
    assert Sandbox(policy).exec("held = hold()\ndel held").error is None
    assert eventually(lambda: not is_there(pids[0]))
    executor.close()


@pytest.mark.slow
def test_workers_that_die_at_random_leave_nothing():
    # Some hundreds; python -m bench.isolation.kills does a thousand tasks, over a state.
    import random

    executor = ProcessExecutor()
    before = len(list(Path("/proc/self/fd").iterdir()))
    chance = random.Random(7)
    pids = []
    for number in range(250):
        session = executor.session(Policy.default(), Limits(seconds=5.0), {"n": number})
        session.open()
        pids.append(pid_of(session))
        kill = threading.Timer(chance.random() * 0.004, os.kill, [pids[-1], signal.SIGKILL])
        kill.start()
        result = session.run("for i in range(20_000): n += 0\nn")
        kill.join()
        assert result.echo == str(number) or "killed by SIGKILL" in str(result.error)
        session.close()
    assert eventually(lambda: not any(is_there(pid) for pid in pids))
    executor.close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_an_executor_holds_no_policy_that_what_it_grants_leads_to() -> None:
    def used() -> weakref.ref[Policy]:
        executor, policy = ProcessExecutor(), Policy.default()
        policy.fn(lambda: policy, name="own")
        session = executor.session(policy, Limits(seconds=20), {})
        assert session.run("1 + 1").echo == "2"
        session.close()
        executor.close()
        return weakref.ref(policy)

    policy = used()
    gc.collect()
    assert policy() is None


def spare_of(session: RemoteSession) -> int | None:
    """Return the process that waits to become the next worker; None where there is none yet."""
    zygote = Path(f"/proc/{pid_of(session)}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1]
    children = Path(f"/proc/{zygote}/task/{zygote}/children").read_text(encoding="ascii").split()
    return next((int(child) for child in children if int(child) != pid_of(session)), None)


def test_the_next_worker_is_forked_before_it_is_ordered(executor):
    first = executor.session(Policy.default(), Limits(seconds=5.0), {"rows": [1]})
    first.run("pass")
    assert eventually(lambda: spare_of(first) is not None)
    spare = spare_of(first)
    second = executor.session(Policy.default(), Limits(seconds=5.0), {"rows": [2]})
    assert second.run("rows").echo == "[2]"
    assert pid_of(second) == spare
    assert first.run("rows").echo == "[1]"
    first.close()
    second.close()


def test_where_the_waiting_worker_was_killed_another_takes_its_order(executor):
    first = executor.session(Policy.default(), Limits(seconds=5.0), {})
    first.run("pass")
    assert eventually(lambda: spare_of(first) is not None)
    os.kill(spare_of(first), signal.SIGKILL)
    second = executor.session(Policy.default(), Limits(seconds=5.0), {"rows": [2]})
    assert second.run("rows").echo == "[2]"
    first.close()
    second.close()


def test_the_waiting_worker_ends_with_its_executor():
    executor = ProcessExecutor()
    session = executor.session(Policy.default(), Limits(seconds=5.0), {})
    session.run("pass")
    assert eventually(lambda: spare_of(session) is not None)
    spare = spare_of(session)
    session.close()
    executor.close()
    assert eventually(lambda: not is_there(spare))
