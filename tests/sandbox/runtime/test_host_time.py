"""The clock of a run counts guest code: what a registered function takes is the host's.

Stopped by: sandbox.runtime.host_time, sandbox.runtime.limits.
"""

from __future__ import annotations

import ctypes
import threading
import time

import pytest

from agex.errors import DefinitionError, EvalError
from agex.sandbox import Limits, Policy, Sandbox

LIMIT = 0.6


def wait(seconds):
    """Wait in C, as a database or a network does."""
    threading.Event().wait(seconds)
    return "waited"


def work(seconds):
    """Work in Python."""
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        count += 1
    return "worked"


def apply(function, *args):
    return function(*args)


class Store:
    """A live object."""

    def wait(self, seconds):
        return wait(seconds)

    def apply(self, function):
        return function()


def run(source, *, seconds=LIMIT, thread=False, **timeouts):
    policy = Policy.default()
    for function in (wait, work, apply):
        policy.fn(function, timeout=timeouts.get(function.__name__))
    policy.fn(threading.Event().wait, name="c_wait")
    policy.module(Store(), name="store")
    return exec_in(source, Sandbox(policy, limits=Limits(seconds=seconds)), thread)


def exec_in(source, sandbox, thread, **names):
    """Run code in this thread or in another one."""
    if not thread:
        return sandbox.exec(source, names)
    results = []
    runner = threading.Thread(target=lambda: results.append(sandbox.exec(source, names)))
    runner.start()
    runner.join()
    return results[0]


@pytest.fixture(params=[False, True], ids=["main", "thread"])
def thread(request):
    return request.param


@pytest.mark.parametrize(
    "call", ["wait(0.7)", "work(0.7)", "c_wait(0.7)", "store.wait(0.7)", "[wait(0.05) for _ in range(14)]"]
)
def test_a_function_of_the_host_is_not_interrupted_and_takes_no_time_of_the_run(call, thread):
    result = run(f"x = {call}\ny = sum(i for i in range(1000))", thread=thread)
    assert result.error is None
    assert result.namespace["y"] == 499500
    assert result.duration > 0.6


@pytest.mark.parametrize(
    "source",
    [
        "wait(0.6)\nwhile True: pass",
        "apply(lambda: [0 for _ in iter(int, 1)])",
        "while True:\n    apply(lambda: [0 for _ in range(100_000)])",
        "store.apply(lambda: [0 for _ in iter(int, 1)])",
        "def f():\n    wait(0.05)\n    while True: pass\napply(apply, f)",
        "while True:\n    try: apply(lambda: [0 for _ in iter(int, 1)])\n    except: pass",
        "while True: sum(range(5_000_000))",  # no thread looks meanwhile
    ],
)
def test_guest_code_ends_at_its_limit_also_in_a_callback_of_the_host(source, thread):
    result = run(source, thread=thread)
    assert isinstance(result.error, EvalError)
    assert isinstance(result.error.__cause__, TimeoutError)
    assert result.duration < 4


@pytest.mark.skipif(
    not hasattr(time, "pthread_getcpuclockid"), reason="a thread has no clock of its own here"
)
def test_time_in_which_another_thread_lets_nobody_run_is_not_counted(thread):
    """A busy machine does the same: no look at the clock comes meanwhile, and the next one finds guest code."""
    over, begin, sleep = [], threading.Event(), ctypes.PyDLL(None).usleep

    def hold():
        begin.wait(20)
        threading.Event().wait(0.05)
        sleep(1_800_000)  # with the lock of the interpreter
        over.append(True)

    threading.Thread(target=hold).start()
    policy = Policy.default()
    policy.fn(begin.set, name="begin")
    sandbox = Sandbox(policy, limits=Limits(seconds=1.5))
    result = exec_in("begin()\nwhile not over: pass", sandbox, thread, over=over)
    assert result.error is None
    assert result.duration > 1.8


def test_the_limit_of_a_function_ends_the_run_and_leaves_the_function_alone(thread):
    done = threading.Event()

    def slow():
        wait(0.5)
        done.set()

    policy = Policy.default()
    policy.fn(slow, timeout=0.1)
    sandbox, results = Sandbox(policy, limits=Limits(seconds=5.0)), []
    source = "try:\n    slow()\nexcept BaseException:\n    pass\nx = 1"
    runner = threading.Thread(target=lambda: results.append(sandbox.exec(source)))
    runner.start()
    runner.join()
    (result,) = results
    assert str(result.error) == "TimeoutError: slow() took longer than its timeout of 0.1 s"
    assert isinstance(result.error.__cause__, TimeoutError)
    assert "x" not in result.namespace
    assert result.duration < 0.45
    assert done.wait(5)


def test_within_its_limit_a_function_returns_raises_and_prints_as_ever(thread):
    def careful(number):
        print("asked", number)
        if number < 0:
            raise ValueError("below zero")
        return number * 2

    policy = Policy.default()
    policy.fn(careful, timeout=5.0)
    source = "try:\n    careful(-1)\nexcept ValueError as error:\n    print(error)\ncareful(4)"
    result = Sandbox(policy).exec(source)
    assert (result.value, result.error) == (8, None)
    assert "below zero" in result.stdout


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(timeout):
    with pytest.raises(DefinitionError, match="is no limit"):
        Policy().fn(wait, timeout=timeout)


@pytest.mark.parametrize(
    "callback",
    ["g()", "import time; time.sleep(30)", "apply(g)"],
    ids=["endless", "asleep", "endless below another"],
)
def test_what_a_function_with_a_limit_of_its_own_calls_back_counts_as_the_codes(callback, thread):
    begun = time.monotonic()
    source = f"def g():\n    while True: pass\ndef f(): {callback}\napply(f)"
    result = run(source, thread=thread, apply=20.0)
    assert f"ran longer than {LIMIT} s" in str(result.error)
    assert time.monotonic() - begun < 10


def test_a_function_with_a_limit_of_its_own_that_calls_back_has_the_clock_stand_still(thread):
    source = f"def f(): return wait({3 * LIMIT})\nwait({2 * LIMIT}), apply(f), apply(wait, {2 * LIMIT})"
    result = run(source, thread=thread, apply=20.0, wait=20.0)
    assert result.value == ("waited",) * 3
