"""What a guest leaves in an event loop ends with its run, inside the limits of that.

Stopped by: sandbox.stdlib.asyncio_tasks, sandbox.runtime.asyncio_cleanup.
"""

import asyncio
import gc
import subprocess
import sys
import warnings
import weakref
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest

from agex.errors import SandboxError
from agex.sandbox import Limits, Policy, Sandbox
from agex.sandbox.runtime.context import CURRENT

LEFT = {
    "a coroutine of a class of its own": """
import collections.abc
class C(collections.abc.Coroutine):
    def send(self, value): return None
    def throw(self, *error): pass
    def close(self): pass
    def __await__(self): yield
    def __getattr__(self, name):
        while True: pass
task = asyncio.create_task(C())
await asyncio.sleep(0)
""",
    "a task that is not to be cancelled": """
async def go():
    while True:
        try: await asyncio.sleep(0)
        except asyncio.CancelledError: pass
task = asyncio.create_task(go())
await asyncio.sleep(0)
""",
    "a task that goes on when cancelled": """
async def go():
    try: await asyncio.sleep(100)
    except asyncio.CancelledError: pass
    while True: pass
task = asyncio.create_task(go())
await asyncio.sleep(0)
""",
    "a callback": """
def forever(task):
    while True: pass
task = asyncio.create_task(asyncio.sleep(100))
task.add_done_callback(forever)
await asyncio.sleep(0)
""",
    "an awaitable in gather": """
class W:
    def __await__(self):
        yield from asyncio.sleep(0.1).__await__()
        while True: pass
task = asyncio.gather(W())
await asyncio.sleep(0)
""",
    "a wait in a task": """
async def go():
    await asyncio.sleep(0.1)
    while True: pass
task = asyncio.create_task(asyncio.wait_for(go(), 100))
await asyncio.sleep(0)
""",
    "a generator as a coroutine": """
import types
@types.coroutine
def go():
    for _ in range(3): yield
    while True: pass
async def wait(): await go()
try: task = asyncio.create_task(go())
except TypeError: task = asyncio.create_task(wait())
await asyncio.sleep(0)
""",
    "an asynchronous generator": """
async def values():
    try: yield 1
    finally:
        while True: pass
them = values()
await them.__anext__()
del them
""",
    "a callback that hangs itself on the next future": """
turns, kept = [], []
def again(future=None):
    turns.append(future)
    if len(turns) > 50:
        while True: pass
    kept.append(asyncio.sleep(100))
    following = kept[-1].send(None)
    following.add_done_callback(again)
    following.set_result(1)
again()
""",
    "a callback in a context of a class of its own": """
class Context:
    def run(self, call, *args):
        while True: pass
future = asyncio.sleep(100).send(None)
future.add_done_callback(print, context=Context())
future.set_result(1)
""",
    "a task in a context of a class of its own": """
class Context:
    def run(self, call, *args):
        while True: pass
async def go(): pass
task = asyncio.create_task(go(), context=Context())
""",
    "a time to wait that says how it compares": """
class Late:
    def __le__(self, other): return False
    def __radd__(self, other): return self
    def __ge__(self, other): raise ValueError
    __lt__ = __sub__ = __rsub__ = __gt__ = __ge__
late = Late()
tasks = [
    asyncio.create_task(each)
    for each in (asyncio.sleep(late), asyncio.wait_for(asyncio.sleep(1), late),
                 asyncio.wait([asyncio.create_task(asyncio.sleep(1))], timeout=late))
]
try:
    async with asyncio.timeout(9) as timeout: timeout.reschedule(late)
except TypeError: pass
try:
    async with asyncio.timeout(late): await asyncio.sleep(0)
except TypeError: pass
try: each = asyncio.as_completed([asyncio.sleep(0)], timeout=late)
except TypeError: pass
await asyncio.sleep(0)
""",
    "a limit that is entered and not left": """
await asyncio.timeout(0.1).__aenter__()
""",
    "a group that is entered and not left": """
group = asyncio.TaskGroup()
await group.__aenter__()
async def fail(): raise ValueError
group.create_task(fail())
try: await asyncio.sleep(0.1)
except asyncio.CancelledError: pass
""",
    "an exit in a task": """
async def go(): raise SystemExit(3)
task = asyncio.create_task(go())
await asyncio.sleep(0.1)
""",
    "an exit in a gathered task": """
async def go(): raise SystemExit(3)
await asyncio.gather(go())
""",
    "an exit in a callback": """
task = asyncio.create_task(asyncio.sleep(0))
def leave(task): raise SystemExit(3)
task.add_done_callback(leave)
await asyncio.sleep(0.1)
""",
    "an exit in a generator that is dropped": """
async def go():
    try: yield 1
    finally: raise SystemExit(3)
async for each in go(): break
await asyncio.sleep(0.1)
""",
    "an exit in a generator that is dropped last": """
async def go():
    try: yield 1
    finally:
        await asyncio.sleep(0)
        raise SystemExit(3)
async for each in go(): break
""",
    "an exit in a generator that is left": """
async def go():
    try: yield 1
    finally: raise SystemExit(3)
left = go()
await anext(left)
""",
    "a condition whose lock is never free": """
condition = asyncio.Condition()
async def hold(): await condition.acquire()
async with condition:
    task = asyncio.create_task(hold())
    await condition.wait()
""",
    "a task with a condition whose lock is never free": """
condition = asyncio.Condition()
async def wait():
    async with condition: await condition.wait()
task = asyncio.create_task(wait())
await asyncio.sleep(0)
await condition.acquire()
""",
    "a task of a task that ends": """
async def go():
    try: await asyncio.sleep(100)
    finally: asyncio.create_task(go())
task = asyncio.create_task(go())
await asyncio.sleep(0)
""",
}

HOST = """
import asyncio, logging, sys, time
from agex.sandbox import Limits, Sandbox

logging.disable()  # what a callback raises is told there
sandbox = Sandbox(limits=Limits(seconds=0.3))
kept = []

async def main():
    start = time.monotonic()
    kept.append(await sandbox.aexec("import asyncio" + sys.argv[1]))
    assert not asyncio.current_task().cancelling()
    await asyncio.sleep(0.2)
    assert time.monotonic() - start < 5
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (await sandbox.aexec("1 + 1")).value == 2

asyncio.run(main())
"""


@pytest.mark.parametrize("name", LEFT)
def test_it_does_not_go_on_in_the_loop_of_the_host(name: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", HOST, LEFT[name]], timeout=30, check=True)


async def test_a_cancelled_task_tidies_up_before_the_run_is_over() -> None:
    result = await Sandbox(limits=Limits(seconds=5)).aexec("""
import asyncio
async def go():
    try: await asyncio.sleep(100)
    finally:
        await asyncio.sleep(0)
        print("tidy")
task = asyncio.create_task(go())
await asyncio.sleep(0)
""")

    assert result.error is None
    assert result.stdout == "tidy\n"


async def test_the_guarded_members_of_asyncio_do_what_the_real_ones_do() -> None:
    result = await Sandbox(limits=Limits(seconds=5)).aexec("""
import asyncio
async def after(n):
    await asyncio.sleep(n / 100)
    return n
async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(after(n)) for n in (2, 1)]
print([task.result() for task in tasks])
print([await each for each in asyncio.as_completed([after(3), after(0)])])
print(await asyncio.wait_for(after(1), 5), await asyncio.gather(after(1), after(0)))
try: await asyncio.wait_for(after(500), 0.01)
except TimeoutError: print("late")
done, pending = await asyncio.wait({asyncio.create_task(after(1), name="one")})
print([task.get_name() for task in done], pending)
""")

    assert result.error is None
    assert result.stdout == "[2, 1]\n[0, 3]\n1 [1, 0]\nlate\n['one'] set()\n"


async def test_a_class_over_a_task_group_does_not_reach_the_loop_of_the_host() -> None:
    source = """
import asyncio
class Peeking(asyncio.TaskGroup):
    def peek(self): return self._loop
async with Peeking() as group:
    leak = group.peek()
"""
    done = await Sandbox().aexec(source)

    assert "'_loop' of 'Peeking'" in repr(done.error)
    assert "leak" not in done.namespace


async def test_a_time_to_wait_is_any_number_that_compares_like_one() -> None:
    result = await Sandbox(limits=Limits(seconds=5)).aexec("""
import asyncio, fractions
class Short(float): pass
for given in (0, 0.001, Short(0.001), fractions.Fraction(1, 1000), True and 0):
    await asyncio.sleep(given)
    async with asyncio.timeout(1 + given): await asyncio.sleep(given, "x")
async with asyncio.timeout(None) as timeout:
    timeout.reschedule(None)
for wrong in ("1", float("nan")):
    try: await asyncio.sleep(wrong)
    except (TypeError, ValueError) as error: print(type(error).__name__)
""")

    assert result.error is None
    assert result.stdout == "TypeError\nValueError\n"


IN_A_LOOP = """
import asyncio
from agex.sandbox import Sandbox

async def main():
    Sandbox().exec('''
async def go():
    try: yield 1
    finally: raise SystemExit(3)
left = go()
try: anext(left).send(None)
except StopIteration: pass
del left
''')
    await asyncio.sleep(0.1)

asyncio.run(main())
"""


def test_a_generator_of_a_synchronous_run_does_not_end_the_event_loop_around_it() -> None:
    subprocess.run([sys.executable, "-c", IN_A_LOOP], timeout=30, check=True)


@pytest.mark.parametrize(
    "program",
    [
        "while True:\n  try: await asyncio.sleep(1)\n  except asyncio.CancelledError: pass",
        "try: await asyncio.sleep(60)\nexcept asyncio.CancelledError: x = 1",
        "try: await asyncio.sleep(60)\nfinally: raise ValueError",
        "await asyncio.create_task(asyncio.sleep(60))",
    ],
)
async def test_what_the_host_cancels_ends_whatever_the_program_catches(program: str) -> None:
    session = Sandbox(limits=Limits(seconds=60)).session()
    running = asyncio.create_task(session.arun("import asyncio\n" + program))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(20):
            await running
    assert running.cancelled()
    assert not session.is_running
    assert (await session.arun("1 + 1")).value == 2


async def test_a_limit_of_the_host_around_a_run_is_kept() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await Sandbox(limits=Limits(seconds=60)).aexec(
                "import asyncio\ntry: await asyncio.sleep(60)\nexcept asyncio.CancelledError: pass"
            )


async def test_generators_that_are_dropped_are_closed_in_their_event_loop() -> None:
    closed: list[str] = []

    async def hosts() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append("host")

    policy = Policy.default()
    policy.fn(closed.append, name="note")
    policy.fn(hosts)
    await Sandbox(policy).aexec("""
import asyncio
async def guests():
    try: yield 1
    finally:
        await asyncio.sleep(0)
        note("guest")
async for each in guests(): break
async for each in hosts(): break
""")
    async for _ in hosts():
        break
    await asyncio.sleep(0.01)
    assert sorted(closed) == ["guest", "host", "host"]


@pytest.mark.parametrize(
    "program",
    [
        "task = asyncio.create_task(fail())\nawait asyncio.sleep(0)\ndel task",
        "both = asyncio.gather(fail(), fail())\nawait asyncio.sleep(0.01)\ndel both",
        "task = asyncio.create_task(fail())\ntry: await asyncio.wait_for(task, 0)\nexcept TimeoutError: pass\ndel task",
        "async for each in late(): break\nawait asyncio.sleep(0.01)",
    ],
)
async def test_the_host_is_told_of_no_error_that_nobody_asked_for(program: str) -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    result = await Sandbox().aexec(f"""
import asyncio
async def fail(): raise ValueError
async def late():
    try: yield 1
    finally: raise ValueError
{program}
""")
    gc.collect()
    assert result.error is None
    assert told == []


async def test_a_callback_of_a_task_is_called_in_the_run_and_can_be_taken_off() -> None:
    session = Sandbox(limits=Limits(seconds=5)).session()
    result = await session.arun("""
import asyncio
async def go(): return 1
task = asyncio.create_task(go())
task.add_done_callback(lambda task: print(task.result()))
def never(task): print("never")
task.add_done_callback(never)
print(task.remove_done_callback(never))
await task
""")

    assert result.error is None
    assert result.stdout == "1\n1\n"


async def test_a_callback_on_a_future_of_the_host_is_not_called_after_the_run() -> None:
    import asyncio

    future = asyncio.get_running_loop().create_future()
    session = Sandbox(limits=Limits(seconds=5)).session({"future": future})
    await session.arun("called = []\nfuture.add_done_callback(called.append)")

    future.set_result(1)
    await asyncio.sleep(0)
    assert session.namespace["called"] == []


async def test_a_callback_of_the_host_is_neither_shown_nor_taken_off_by_a_guest() -> None:
    import asyncio

    future, called = asyncio.get_running_loop().create_future(), []
    future.add_done_callback(called.append)
    result = await Sandbox(limits=Limits(seconds=5)).aexec(
        """
class Any:
    def __call__(self, future): pass
    def __eq__(self, other): seen.append(other); return True
    __hash__ = None
seen = []
own = print
future.add_done_callback(own)
taken = future.remove_done_callback(Any())
""",
        {"future": future},
    )

    assert result.namespace["taken"] == 1
    assert result.namespace["seen"] == [result.namespace["own"]]
    future.set_result(1)
    await asyncio.sleep(0)
    assert called == [future]


async def test_while_a_run_waits_the_host_meets_no_code_of_the_guest_without_limits() -> None:
    session = Sandbox(limits=Limits(seconds=20.0)).session()
    made = await session.arun("class A:\n  def __eq__(self, other): raise SystemExit(3)\na = A()")
    waiting = asyncio.create_task(session.arun("import asyncio\nawait asyncio.sleep(0.2)\n'over'"))
    await asyncio.sleep(0.05)
    assert session.is_running
    with pytest.raises(SandboxError, match="SystemExit is not available"):
        assert made.namespace["a"] == 1
    assert (await waiting).value == "over"


async def test_a_run_that_goes_on_has_the_methods_of_its_classes_as_they_are() -> None:
    result = (
        await Sandbox()
        .session()
        .arun(
            """
import asyncio
class Meta(type):
  def __eq__(cls, other): return "equal"
  def __hash__(cls): return 1
class A(metaclass=Meta):
  def __repr__(self): return "an A"
async def go():
  await asyncio.sleep(0)
  return A == int, repr(A())
first = await go()
both = await asyncio.gather(go(), go())
first, both, A == int
"""
        )
    )
    assert result.error is None
    assert result.value == (("equal", "an A"), [("equal", "an A")] * 2, "equal")


async def test_nothing_holds_a_session_that_has_run() -> None:
    session = Sandbox().session()
    result = await session.arun("import asyncio\nclass A: pass\nawait asyncio.gather(asyncio.sleep(0))")
    assert result.error is None
    held = weakref.ref(session)
    del session, result
    gc.collect()
    assert held() is None


NOTED: ContextVar[str] = ContextVar("noted", default="nothing")


async def test_what_a_function_of_the_host_sets_in_a_run_is_set_behind_it() -> None:
    policy = Policy()
    policy.fn(lambda: str(NOTED.set("this")), name="note")
    result = await Sandbox(policy).session().arun("note()")
    assert result.error is None
    assert NOTED.get() == "this"


async def test_an_event_loop_in_debug_mode_looks_up_no_source_and_runs_as_ever() -> None:
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    try:
        result = await Sandbox(limits=Limits(seconds=5)).aexec("""
import asyncio
async def go(n):
    await asyncio.sleep(0)
    return n * 2
await asyncio.gather(*(go(n) for n in range(3)))
""")
    finally:
        loop.set_debug(False)

    assert (result.error, result.value) == (None, [0, 2, 4])


async def test_a_task_that_is_cancelled_before_it_begins_is_awaited_by_nobody_and_no_one_is_warned() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = await Sandbox(limits=Limits(seconds=5)).aexec("""
import asyncio
async def go(): print("never")
tasks = [asyncio.create_task(go()), asyncio.ensure_future(asyncio.sleep(9)), asyncio.gather(go(), go())]
for task in tasks: task.cancel()
for task in tasks:
    try: await task
    except asyncio.CancelledError: print("cancelled")
del task, tasks
""")
        gc.collect()

    assert (result.error, result.stdout) == (None, "cancelled\n" * 3)
    assert [str(each.message) for each in warned] == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_that_is_dropped_with_its_loop_leaves_the_host_as_it_is() -> None:
    """What a dropped coroutine does in the end, it does in whatever context is there then: the host's."""
    loop = asyncio.new_event_loop()
    source = "import asyncio\nwhile True: await asyncio.sleep(0.01)"
    run = loop.create_task(Sandbox().aexec(source))
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    del run, loop
    gc.collect()

    assert CURRENT.get() is None
