"""A limit holds where standard library code could swallow it, wait through it, or end what enforces it.

Stopped by: sandbox.runtime.limits, sandbox.runtime.kill_switch.
"""

import subprocess
import sys

import pytest

IN_A_THREAD = """
import threading
from agex.sandbox import Limits, Sandbox

def in_a_thread(source, **limits):
    done = []
    run = lambda: done.append(Sandbox(limits=Limits(**{"seconds": 0.3, **limits})).exec(source).error)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    return "it hangs" if not done else str(done[0])
"""


def check(code: str, *args: str) -> None:
    """Run a program that would hang where the limit does not hold."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", IN_A_THREAD + code, *args], timeout=60, check=True)


SWALLOWED = {
    "a decorator that suppresses": """
import contextlib, collections, itertools, time
class D(contextlib.ContextDecorator, contextlib.suppress): pass
f = D(BaseException)(time.sleep)
collections.deque(map(f, itertools.repeat(0.005)), maxlen=0)
""",
    "a stack that fills itself": """
import contextlib, itertools
stack, own = contextlib.ExitStack(), []
endless = map(stack.callback, itertools.repeat(next), itertools.cycle(own))
own.append(endless)
stack.push("x".format)
stack.callback(next, endless)
stack.close()
""",
}


@pytest.mark.parametrize("name", SWALLOWED)
def test_what_the_standard_library_suppresses_does_not_outlive_the_limit(name: str) -> None:
    """Stopped by: sandbox.patches.contextlib."""
    check(
        "import sys\n"
        "assert 'TimeoutError' in in_a_thread(sys.argv[1]), 'in a thread'\n"
        "error = Sandbox(limits=Limits(seconds=0.3)).exec(sys.argv[1]).error\n"
        "assert 'TimeoutError' in str(error), error",
        SWALLOWED[name],
    )


def test_the_class_of_what_ended_a_run_is_asked_for_nothing() -> None:
    """It is looked at when the limit is off."""
    program = """
class M(type):
    def __hash__(cls):
        while endless: pass
        return 5
endless = False
class E(MemoryError, metaclass=M): pass
error = E()
endless = True
raise error
"""
    check("import sys\nassert 'out of memory' in in_a_thread(sys.argv[1])", program)


def test_context_managers_are_those_of_the_standard_library_otherwise() -> None:
    """Stopped by: sandbox.patches.contextlib."""
    from agex.sandbox import Sandbox

    result = Sandbox().exec("""
import contextlib
@contextlib.contextmanager
def quiet():
    try: yield
    except ValueError: print("quiet")
@quiet()
def fails():
    raise ValueError
with contextlib.ExitStack() as stack:
    stack.enter_context(contextlib.suppress(KeyError))
    stack.callback(print, "bye")
    raise KeyError
fails()
""")

    assert result.stdout == "bye\nquiet\n"


def test_the_first_thread_with_a_limit_of_memory_leaves_a_limit_of_time_to_the_next() -> None:
    check(
        "in_a_thread('1', memory_mb=1)\n"
        "said = in_a_thread('while True: pass')\n"
        "assert 'TimeoutError' in said, said"
    )


def test_a_guest_that_fills_the_memory_does_not_end_the_watchdog() -> None:
    source = """
x, n = None, 0
while True:
    try:
        while True: x = (x, n, "a" * n)
    except MemoryError:
        n = 0
"""
    check(
        "import sys\n"
        "in_a_thread('1')\n"
        "in_a_thread(sys.argv[1], memory_mb=100)\n"
        "said = in_a_thread('while True: pass')\n"
        "assert 'TimeoutError' in said, said",
        source,
    )


WAITS = (
    "queue.Queue().get()",
    "queue.SimpleQueue().get()",
    "queue.SimpleQueue().get(timeout=1e5)",
    "q = queue.LifoQueue(1); q.put(1); q.put(2)",
    "q = queue.PriorityQueue(); q.put(1); q.join()",
    "q = queue.Queue(); q.mutex.acquire(); q.mutex.acquire()",
    "q = queue.Queue()\nwith q.not_empty:\n    while True: q.not_empty.wait()",
    "import time; time.sleep(60)",
    "from time import sleep; list(map(sleep, [0.1] * 600))",
    "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass",
    "import functools, time; functools.partial(time.sleep, 60.5)()",
)


@pytest.mark.parametrize("source", WAITS)
def test_nothing_is_waited_for_beyond_the_limit(source: str) -> None:
    """Stopped by: sandbox.stdlib.queue."""
    check(
        "import sys, asyncio\n"
        "said = in_a_thread(sys.argv[1])\n"
        "assert 'TimeoutError' in said, said\n"
        "result = asyncio.run(Sandbox(limits=Limits(seconds=0.3)).aexec(sys.argv[1]))\n"
        "assert 'TimeoutError' in str(result.error)",
        f"import queue\n{source}",
    )


@pytest.mark.parametrize(
    "seconds", ["-1", "float('nan')", "'1'", "1e300", "None", "[1]", "-0.0", "0", "False", "0.06"]
)
def test_sleep_takes_and_refuses_what_the_real_one_does(seconds: str) -> None:
    """Stopped by: sandbox.stdlib.queue."""
    import time

    from agex.sandbox import Sandbox

    source = f"try:\n    time.sleep({seconds})\nexcept Exception as error:\n    said = type(error).__name__, str(error)"
    real: dict[str, object] = {"time": time, "said": None}
    exec(source, real)
    ours = Sandbox().exec(f"import time\nsaid = None\n{source}")
    assert ours.error is None
    assert ours.namespace["said"] == real["said"]


def test_a_queue_does_what_a_queue_does() -> None:
    """Stopped by: sandbox.stdlib.queue."""
    from agex.sandbox import Sandbox

    result = Sandbox().exec("""
import queue
class Small(queue.LifoQueue):
    def __init__(self): super().__init__(2)
q = Small()
q.put(1); q.put(2)
try: q.put(3, timeout=0.01)
except queue.Full: print("full", isinstance(q, queue.Queue))
print(q.get(), q.get_nowait(), q.empty())
s = queue.SimpleQueue()
s.put("a")
print(s.get(), s.qsize())
try: s.get(timeout=0.01)
except queue.Empty: print("empty")
""")

    assert result.error is None
    assert result.stdout == "full True\n2 1 True\na 0\nempty\n"
