"""A time limit strikes anywhere in the host's own work for a guest: nothing stays set behind it.

Stopped by: sandbox.runtime.limits, sandbox.runtime.context.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys

import pytest
from monkeyfs import current_fs

from agex.files import connect_fs
from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.policy.module_grant import open_while
from agex.sandbox.runtime.audit_hook import PERMISSIONS
from agex.sandbox.runtime.context import CURRENT, call_serving
from agex.sandbox.runtime.output import CAPTURE, _users

LOOPS = {
    "files": "import os\nwhile True: os.path.exists('a')",
    "doors": "while True: opened()",
    "tools": "while True: served()",
}


def _contexts():
    return CURRENT.get(), PERMISSIONS.get(), current_fs.get()


@pytest.fixture
def small_heap():
    """What was there before is not looked at by each collection of the test: that took most of its time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("small_heap")
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_limit_leaves_no_door_open_and_no_guest_in_place(loop):
    """Each run is struck at another place; in one of ten it was within a context manager."""
    names = {"opened": open_while(("files", "network"), int), "served": lambda: call_serving(int)}
    found = set()
    for turn in range(60):
        sandbox = Sandbox(Policy.default(), fs=connect_fs(), limits=Limits(seconds=0.003 + turn * 5e-5))
        result = sandbox.exec(loop, names)
        assert result.error is not None
        found.add(_contexts())
        del result
        gc.collect()
        found.add(_contexts())

    assert found == {(None, frozenset(), None)}


AT_DEPTH = """
def deepest(level=0):
    try:
        return deepest(level + 1)
    except RecursionError:
        return level


def at(level):
    return at(level - 1) if level else {call}


most = deepest()
for level in range(max(most - 60, 0), most + 2):
    try:
        at(level)
    except RecursionError:
        pass
    look()
"""


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("call", ["paused()", "repr(other)", "shown(other)", "served()", "opened()"])
def test_host_work_that_finds_the_stack_used_up_changes_nothing(call):
    """Begun and not ended, it would stop the clock, leave hooks open, or print to the host."""
    earlier = Sandbox().session()
    earlier.run("class Other:\n    def __repr__(self): return 'x'\nother = Other()")
    session = Sandbox(limits=Limits(seconds=20.0)).session()

    def paused(work=int, *args):
        with session.paused():
            return work(*args)

    seen = set()

    def look():
        hooks, before = session._hooks, earlier._hooks
        seen.add((hooks._pauses, hooks._is_open, before._is_open, before._is_on, earlier._runs))
        seen.add((session._deadline.active, session._deadline._pauses, _users.count, CAPTURE.get() is None))

    session.add(
        {
            "paused": paused,
            "shown": lambda value: paused(repr, value),
            "other": earlier.look_up("other"),
            "served": lambda: call_serving(int),
            "opened": open_while(("files",), int),
            "look": look,
        }
    )
    assert session.run(AT_DEPTH.format(call=call)).error is None

    assert seen == {(0, True, False, False, 0), (True, 0, 1, False)}
    assert earlier._deadline is None


def test_a_guest_that_has_the_host_work_over_and_over_gains_no_time():
    session = Sandbox(limits=Limits(seconds=0.05)).session()

    def paused():
        with session.paused():
            pass

    session.add({"paused": paused})
    result = session.run("for _ in range(40_000): paused()")
    assert "longer than 0.05 s" in str(result.error)


def test_no_door_is_open_in_a_run_that_a_function_with_open_doors_begins(tmp_path):
    (tmp_path / "secret").write_text("secret")
    inner = Sandbox(Policy.default())

    def read():
        return (tmp_path / "secret").open().read()

    begun = open_while(("files",), lambda: inner.exec("read()", {"read": read}).error)
    assert "host_fs_access=True" in str(Sandbox().exec("begun()", {"begun": begun}).value)


GROWING = """
import resource, sys
from agex.sandbox import Limits, Sandbox
before = resource.getrlimit(resource.RLIMIT_AS)
for turn in range(3):
    session = Sandbox(limits=Limits(seconds=20.0, memory_mb=73)).session()
    result = session.run(sys.argv[1])
    assert "out of memory" in str(result.error), result.error
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert session.run("1 + 1").echo == "2"
    assert not session._hooks._is_on
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the address space")
@pytest.mark.parametrize(
    "program",
    [
        "keep = []\nwhile True:\n    class A:\n        x = 'a' * 10000\n    keep.append(A)",
        "keep = []\nwhile True:\n    keep = [keep, 'a' * 1000]",
        "keep = []\ntry:\n    while True: keep.append('a' * 1000)\nexcept MemoryError:\n    raise MemoryError",
    ],
    ids=["classes", "lists", "raised again"],
)
def test_the_host_lives_on_where_the_guest_has_taken_all_memory(program):
    """The limit was never lifted where the host had no memory left to lift it with."""
    subprocess.run([sys.executable, "-c", GROWING, program], timeout=100, check=True)


def test_an_alarm_that_rings_while_the_clock_is_being_stopped_is_none_of_the_guests_errors(monkeypatch):
    """It was seen as a ValueError in guest code: the kernel had rung between two lines of the host's."""
    rung = []

    class Ringing(list):
        def remove(self, deadline):
            super().remove(deadline)
            rung.append(deadline)
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr("agex.sandbox.runtime.deadline._alarm._deadlines", Ringing())
    before = signal.getsignal(signal.SIGALRM)
    result = Sandbox(Policy.default(), limits=Limits(seconds=20.0)).exec("x = len('four')")
    assert result.error is None
    assert result.namespace["x"] == 4
    assert rung
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
