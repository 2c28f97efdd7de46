"""A run ends at its limit, whatever it does, and the host can tell why.

Stopped by: sandbox.runtime.limits, sandbox.runtime.kill_switch, sandbox.runtime.output.
"""

import asyncio
import contextlib
import gc
import heapq
import io
import os
import signal
import subprocess
import sys
import threading

import pytest

from agex.errors import EvalError
from agex.sandbox import Limits, Result, Sandbox
from agex.sandbox.runtime import deadline, limits, output
from agex.sandbox.runtime.deadline import Deadline

QUICK = Limits(seconds=0.3)

RUNAWAYS = {
    "loop": "while True: pass",
    "comprehension": "[0 for _ in iter(int, 1)]",
    "generator": "def g():\n    while True: yield 1\nfor _ in g(): pass",
    "lambda in a C loop": "any(map(lambda x: False, iter(int, 1)))",
    "recursion": "def f(n):\n    try: f(n)\n    except RecursionError: f(n)\nf(1)",
    "bare except": "while True:\n    try:\n        while True: pass\n    except: pass",
    "finally": "while True:\n    try:\n        while True: pass\n    finally: continue",
    "exit": "class C:\n    def __enter__(self): pass\n    def __exit__(self, *e): return True\nwhile True:\n    with C():\n        while True: pass",
}


def check_timed_out(result: Result) -> None:
    assert isinstance(result.error, EvalError)
    assert isinstance(result.error.__cause__, TimeoutError)
    assert "0.3 s" in str(result.error)
    assert result.duration < 5


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python 3.14 says it of a finally
@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("name", RUNAWAYS)
def test_a_runaway_ends_on_the_main_thread(name: str) -> None:
    check_timed_out(Sandbox(limits=QUICK).exec(RUNAWAYS[name]))


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("name", RUNAWAYS)
def test_a_runaway_ends_on_another_thread(name: str) -> None:
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(Sandbox(limits=QUICK).exec(RUNAWAYS[name])))
    thread.start()
    thread.join(20)

    check_timed_out(results[0])
    assert results[0].enforcement.time == "flag"


def test_the_watchdog_strikes_a_run_that_has_just_seen_its_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    # It once struck between the watchdog's lock and the block that would have released it.
    fire = Deadline.fire

    def slow(deadline: Deadline) -> None:
        fire(deadline)
        while not deadline.over:
            os.sched_yield()

    monkeypatch.setattr(Deadline, "fire", slow)
    results: list[Result] = []
    for _ in range(2):
        run = threading.Thread(
            target=lambda: results.append(Sandbox(limits=QUICK).exec("while True: pass")), daemon=True
        )
        run.start()
        run.join(20)

    assert len(results) == 2
    for result in results:
        check_timed_out(result)


def test_a_host_traces_its_functions_after_a_run_that_ended_on_another_thread() -> None:
    # Until 3.13 an interpreter told to look for a pending exception that is not there never enters one.
    code = """
import sys, threading
from agex.sandbox import Limits, Sandbox
run = threading.Thread(target=lambda: Sandbox(limits=Limits(seconds=0.1)).exec("while True: pass"))
run.start()
run.join()
tracer = lambda *event: tracer
sys.settrace(tracer)
(lambda: None)()
sys.settrace(None)
"""

    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


def test_the_process_outlives_runs_that_the_watchdog_ends_deep_in_a_recursion() -> None:
    """Python 3.11 dies of it when another thread follows ``f_back`` meanwhile: in five of six such processes."""
    code = """
import threading
from agex.sandbox import Limits, Sandbox

sandbox, ended = Sandbox(limits=Limits(seconds=0.02)), []

def run():
    ended.append(sandbox.exec("def f(n):\\n  try: f(n)\\n  except RecursionError: f(n)\\nf(1)").error)

for _ in range(150):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
assert len(ended) == 150 and all("TimeoutError" in str(error) for error in ended)
"""

    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)


@pytest.mark.parametrize(
    "source",
    ["import time\ntime.sleep(60)", "10**10**8", "import re\nre.match('(a+)+$', 'a' * 50 + 'b')",
     "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass"],
)  # fmt: skip
def test_a_c_call_that_looks_for_signals_ends_on_the_main_thread(source: str) -> None:
    result = Sandbox(limits=QUICK).exec(source)

    check_timed_out(result)
    assert result.enforcement.time == "signal"


async def test_an_awaiting_program_ends() -> None:
    check_timed_out(await Sandbox(limits=QUICK).aexec("import asyncio\nawait asyncio.sleep(60)"))
    check_timed_out(
        await Sandbox(limits=QUICK).aexec("import asyncio\nawait asyncio.sleep(0)\nwhile True: pass")
    )


def test_the_host_lives_on_with_its_signals_as_they_were() -> None:
    before = signal.getsignal(signal.SIGALRM)
    Sandbox(limits=QUICK).exec("while True: pass")

    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_session_runs_again_after_a_limit() -> None:
    session = Sandbox(limits=QUICK).session()
    session.run("x = 1\nwhile True: pass")

    assert session.run("x + 1").value == 2


def test_a_limit_inside_a_nested_run_ends_the_right_one() -> None:
    outer = Sandbox(limits=Limits(seconds=5)).session()
    outer.bind("inner", lambda: type(Sandbox(limits=QUICK).exec("while True: pass").error).__name__)

    assert outer.run("inner()").value == "EvalError"


def test_what_a_guest_had_is_free_once_its_run_is_over() -> None:
    freed = threading.Event()

    class Large:
        def __del__(self) -> None:
            freed.set()

    def run() -> None:
        Sandbox(limits=Limits(seconds=600)).exec("kept = given", {"given": Large()})

    # The first run's limit is what the watchdog waits for; the second one's comes after it.
    for _ in range(2):
        freed.clear()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        gc.collect()
        assert freed.is_set()


def test_the_hosts_time_that_outlives_a_run_starts_no_clock() -> None:
    freed, paused, over = threading.Event(), threading.Event(), threading.Event()

    class Large:
        def __del__(self) -> None:
            freed.set()

    def run() -> None:
        session = Sandbox(limits=Limits(seconds=600)).session({"given": Large()})

        def host() -> None:
            with session.paused():
                paused.set()
                over.wait()

        helper = threading.Thread(target=host)
        session.bind("begin", lambda: helper.start() or paused.wait())
        session.run("begin()")
        over.set()
        helper.join()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    gc.collect()
    assert freed.is_set()


def test_paused_time_does_not_count() -> None:
    session = Sandbox(limits=QUICK).session()

    def slow() -> int:
        with session.paused():
            threading.Event().wait(0.5)
        return 7

    session.bind("slow", slow)

    assert session.run("slow() + 1").value == 8


class Cancelled(BaseException):
    """Ends a run, as a host that cancels it does."""


def test_an_interrupt_from_another_thread_ends_a_run() -> None:
    session = Sandbox(limits=Limits(seconds=20)).session()
    session.bind("started", lambda: threading.Thread(target=session.interrupt, args=(Cancelled(),)).start())

    assert type(session.run("started()\nwhile True: pass").stopped) is Cancelled


def test_output_is_bounded_while_it_is_produced() -> None:
    result = Sandbox(limits=Limits(output_chars=1_000)).exec(
        "for i in range(100_000): print(i)\nprint('the end')"
    )

    assert len(result.stdout) < 1_100
    assert result.stdout.startswith("0\n1\n")
    assert result.stdout.endswith("the end\n")
    assert "characters cut" in result.stdout


def test_the_echo_of_a_huge_value_is_bounded() -> None:
    result = Sandbox(limits=Limits(output_chars=1_000)).exec("list(range(10**6))")

    assert result.echo is not None
    assert len(result.echo) < 1_100
    assert "1,000,000 elements" in result.echo


@pytest.mark.skipif(sys.platform == "win32", reason="address space limits need a POSIX system")
def test_an_allocation_beyond_the_memory_limit_is_an_error() -> None:
    result = Sandbox(limits=Limits(memory_mb=500)).exec("data = bytearray(1024 * 1024 * 1024)")

    assert isinstance(result.error, EvalError)
    assert isinstance(result.error.__cause__, MemoryError)
    assert result.enforcement.memory
    assert len(bytearray(1 << 30)) == 1 << 30


@pytest.mark.skipif(sys.platform == "win32", reason="limits of resources need a POSIX system")
def test_runs_that_end_in_any_order_leave_the_hosts_limits_of_resources() -> None:
    import resource

    def soft() -> list[int]:
        return [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)]

    def run(memory: int, files: int, start: threading.Event, end: threading.Event) -> None:
        limits = Limits(seconds=20, memory_mb=memory, open_files=files)
        Sandbox(limits=limits).exec("go()", {"go": lambda: (start.set(), end.wait(20))})

    before, seen = soft(), []
    events = [threading.Event() for _ in range(4)]
    runs = [
        threading.Thread(target=run, args=(1000, 500, events[0], events[1])),
        threading.Thread(target=run, args=(2000, 600, events[2], events[3])),
    ]
    for thread, started in zip(runs, events[::2], strict=True):
        thread.start()
        assert started.wait(20)
    seen.append(soft())
    for thread, end in zip(runs, events[1::2], strict=True):
        end.set()
        thread.join(20)
        seen.append(soft())

    both, one, none = seen
    assert [files for _, files in seen[:2]] == [500, 600]
    assert both[0] < one[0]
    assert none == before


@pytest.mark.skipif(sys.platform == "win32", reason="limits of resources need a POSIX system")
def test_a_run_within_a_run_limits_resources_too() -> None:
    sandbox = Sandbox(limits=Limits(memory_mb=500, open_files=500))
    earlier = sandbox.session()
    earlier.run("class C:\n    def __eq__(self, other): return True\nc = C()")

    assert sandbox.exec("c == 1", {"c": earlier.globals["c"]}).value is True


def test_what_host_code_prints_for_a_guest_goes_to_the_guest(capsys: pytest.CaptureFixture[str]) -> None:
    result = Sandbox().exec("show()\nprint('mine')", {"show": lambda: print("from the host")})
    print("outside")

    assert result.stdout == "from the host\nmine\n"
    assert capsys.readouterr().out == "outside\n"


def test_what_another_thread_prints_goes_to_the_stream_that_the_host_has_then() -> None:
    def elsewhere() -> None:
        thread = threading.Thread(target=print, args=("from a thread",))
        thread.start()
        thread.join()

    session = Sandbox().session({"elsewhere": elsewhere})
    printed = []
    for _ in range(3):
        with contextlib.redirect_stdout(io.StringIO()) as stream:
            assert session.run("elsewhere()\nprint('mine')").stdout == "mine\n"
            assert sys.stdout is stream
        printed.append(stream.getvalue())

    assert printed == ["from a thread\n"] * 3


def test_an_error_whose_text_never_ends_is_shown_without_it() -> None:
    source = "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E"
    result = Sandbox(limits=QUICK).exec(source)

    assert type(result.error).__name__ == "E"
    assert result.traceback.endswith("E: <exception str() failed>")


async def test_a_function_of_another_session_ends_with_the_run_that_called_it() -> None:
    sandbox = Sandbox(limits=QUICK)
    earlier = sandbox.session()
    earlier.run(
        "def swallow():\n    while True:\n        try:\n            while True: pass\n        except: pass"
    )
    later = sandbox.session({"swallow": earlier.globals["swallow"]})

    check_timed_out(await later.arun("swallow()"))
    assert earlier.run("1 + 1").value == 2


async def test_tasks_that_a_run_leaves_behind_end_with_it() -> None:
    session = Sandbox(limits=QUICK).session()
    result = await session.arun(
        "import asyncio\nseen = []\nasync def go():\n    while True:\n        seen.append(1)\n"
        "        await asyncio.sleep(0)\ntask = asyncio.create_task(go())\nawait asyncio.sleep(0)"
    )
    before = len(result.namespace["seen"])
    await asyncio.sleep(0.01)

    assert result.namespace["task"].cancelled()
    assert len(result.namespace["seen"]) <= before + 1


def test_an_interrupt_of_a_run_within_a_run_does_not_undo_that_of_the_outer_one() -> None:
    outer, inner = (Sandbox(limits=Limits(seconds=20)).session() for _ in range(2))

    def cancel() -> None:
        inner.interrupt(Cancelled())
        outer.interrupt(Cancelled())

    def nested() -> None:
        threading.Timer(0.1, cancel).start()
        inner.run("while True: pass")

    outer.bind("nested", nested)
    result = outer.run("nested()\nwhile True: pass")

    assert isinstance(result.stopped, Cancelled)
    assert result.duration < 10


@pytest.mark.skipif(sys.platform == "win32", reason="limits of resources need a POSIX system")
def test_a_strike_while_the_limit_is_given_back_leaves_the_host_its_own(monkeypatch) -> None:
    import resource

    limit, before = limits._SoftLimit(), resource.getrlimit(resource.RLIMIT_NOFILE)
    apply, strikes = limit._apply, [limits.TimeLimit()]

    def struck(which: int) -> None:
        if strikes and not limit._wanted:
            raise strikes.pop()
        apply(which)

    monkeypatch.setattr(limit, "_apply", struck)
    run = limits.ResourceLimits()
    limit.hold(run, resource.RLIMIT_NOFILE, 100)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 100
    with pytest.raises(limits.TimeLimit):
        limit.release(run, resource.RLIMIT_NOFILE)

    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


@pytest.mark.parametrize("place", ["the main thread", "another thread"])
def test_a_run_may_begin_while_another_begins(place: str, monkeypatch) -> None:
    """A collection may come at any time, and a guest's ``close()`` of a file that is dropped is a run."""
    inner, done = [], []

    def collected() -> None:
        if not inner:
            inner.append(None)
            inner.append(Sandbox(limits=Limits(seconds=5, memory_mb=50_000)).exec("print('inner')").stdout)

    class Router(output._Router):
        def __init__(self, original: object) -> None:
            super().__init__(original)
            collected()

    push = heapq.heappush

    def pushing(heap: list, entry: object) -> None:
        push(heap, entry)
        collected()

    if place == "the main thread":
        monkeypatch.setattr(output, "_Router", Router)
    else:
        monkeypatch.setattr(deadline.heapq, "heappush", pushing)

    def run() -> None:
        done.append(Sandbox(limits=Limits(seconds=5)).exec("print('outer')").stdout)

    if place == "the main thread":
        run()
    else:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(20)
    assert (done, inner) == (["outer\n"], [None, "inner\n"])


def test_a_stream_that_host_code_keeps_of_a_run_leads_to_the_host_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "__stdout__", out)
    monkeypatch.setattr(sys, "stdout", out)
    kept: list[io.TextIOBase] = []
    session = Sandbox().session({"keep": lambda: kept.append(sys.stdout)})
    for _ in range(2):
        assert session.run("keep()\nprint('mine')").stdout == "mine\n"
        assert sys.stdout is out
    print("outside", file=kept[0])

    assert kept[0] is kept[1]
    assert out.getvalue() == "outside\n"


FORKED = """
import os, sys, threading
from agex.sandbox import Limits, Sandbox
sandbox = Sandbox(limits=Limits(seconds=0.2))
def fork():
    child = os.fork()
    if not child:
        done = sandbox.exec("import time\\ntime.sleep(60)")
        os._exit(0 if done.enforcement.time == "signal" and "ran longer" in str(done.error) else 1)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
threading.Thread(target=fork).start()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is forked")
def test_the_thread_that_forked_is_the_main_one_of_the_child() -> None:
    assert (
        subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], timeout=50, check=False).returncode
        == 0
    )
