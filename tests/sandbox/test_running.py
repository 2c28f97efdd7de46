"""``asyncio.run`` in a guest's program: the limits hold in its loop, and nothing of that is left to the host."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agex.errors import EvalError, SandboxError
from agex.sandbox import Limits, Policy, Result, Sandbox
from agex.sandbox.context import CURRENT

FOREVER = {
    "waits for what does not come": "asyncio.run(asyncio.Event().wait())",
    "sleeps": "asyncio.run(asyncio.sleep(60))",
    "counts": "async def main():\n  while True: pass\nasyncio.run(main())",
    "takes turns": "async def main():\n  while True: await asyncio.sleep(0)\nasyncio.run(main())",
    "catches what ends it": """
async def main():
    while True:
        try: await asyncio.sleep(1)
        except BaseException: pass
asyncio.run(main())
""",
    "catches what ends its tasks": """
async def go():
    while True:
        try: await asyncio.sleep(1)
        except BaseException: pass
async def main():
    for _ in range(10): asyncio.create_task(go())
    await asyncio.sleep(0)
asyncio.run(main())
""",
    "does not close a generator": """
async def values():
    try: yield 1
    finally:
        while True: await asyncio.sleep(0)
async def main():
    global them
    them = values()
    await anext(them)
asyncio.run(main())
""",
    "runs again and again": "async def main(): pass\nwhile True: asyncio.run(main())",
    "runs again, whatever ended it": """
async def main(): await asyncio.sleep(0)
while True:
    try: asyncio.run(main())
    except BaseException: pass
""",
}


def _run(source: str, seconds: float = 5.0, policy: Policy | None = None) -> Result:
    return Sandbox(policy, limits=Limits(seconds=seconds)).exec("import asyncio\n" + source)


def _ended(source: str) -> str:
    """Run a program to its limit, and drop all that the limit left in the midst of it."""
    error = _run(source, 0.3).error
    assert type(error) is EvalError
    said = str(error)
    del error
    gc.collect()
    return said


def _in_thread(work: Callable[[], Any]) -> Any:
    done: list[Any] = []
    thread = threading.Thread(target=lambda: done.append(work()))
    thread.start()
    thread.join()
    return done[0]


@pytest.mark.parametrize("where", [lambda work: work(), _in_thread], ids=["main thread", "other thread"])
@pytest.mark.parametrize("source", FOREVER.values(), ids=FOREVER)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_of_time_ends_a_program_in_a_loop_of_its_own(
    source: str, where: Callable[[Callable[[], str]], str]
) -> None:
    start = time.monotonic()

    assert "ran longer than 0.3 s" in where(lambda: _ended(source))
    assert time.monotonic() - start < 1.3


def test_a_call_that_looks_for_signals_is_ended_in_a_loop_too() -> None:
    start = time.monotonic()

    assert "ran longer" in _ended("import time\nasync def main(): time.sleep(60)\nasyncio.run(main())")
    assert time.monotonic() - start < 1.3


def test_an_own_limit_of_a_task_stops_there_and_the_program_goes_on() -> None:
    result = _run("""
async def main():
    try: await asyncio.wait_for(asyncio.sleep(60), 0.01)
    except TimeoutError: return "late"
found = asyncio.run(main())
""")

    assert (result.error, result.namespace["found"]) == (None, "late")


def _of_host() -> tuple[Any, ...]:
    return asyncio._get_running_loop(), sys.get_asyncgen_hooks(), len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("where", [lambda work: work(), _in_thread], ids=["main thread", "other thread"])
def test_the_host_has_its_loop_its_hooks_and_its_files_whenever_a_limit_strikes(
    where: Callable[[Callable[[], None]], None],
) -> None:
    program = """
async def values():
    try: yield 1
    finally: await asyncio.sleep(0)
async def main():
    async for _ in values(): await asyncio.sleep(0)
while True:
    try: asyncio.run(main())
    except BaseException: pass
"""

    def work() -> None:
        _run(program, 0.01)
        gc.collect()
        before = _of_host()
        for turn in range(60):
            assert type(_run(program, 0.01 + turn / 10_000).error) is EvalError
            gc.collect()  # what a limit left in the midst of it is dropped here
            assert _of_host() == before
        assert asyncio.run(asyncio.sleep(0, "the host's")) == "the host's"

    where(work)


async def test_in_a_loop_that_runs_there_is_none_of_its_own() -> None:
    sandbox = Sandbox(limits=Limits(seconds=5))
    source = "import asyncio\nawaited = asyncio.sleep(0)\ntry: asyncio.run(awaited)\nfinally: awaited.close()"
    results = sandbox.exec(source), await sandbox.aexec(source)

    for result in results:
        assert type(result.error) is RuntimeError
        assert str(result.error) == "asyncio.run() cannot be called from a running event loop"


def test_a_function_of_the_host_may_be_awaited_and_has_no_more_rights_than_it_was_given() -> None:
    async def answer() -> str:
        await asyncio.sleep(0)
        return "the host's"

    async def read() -> str:
        return Path("/etc/hostname").read_text(encoding="utf-8")  # noqa: ASYNC240

    policy = Policy.default()
    policy.fn(answer)
    policy.fn(read)
    result = _run("found = asyncio.run(answer())\nasyncio.run(read())", policy=policy)

    assert result.namespace["found"] == "the host's"
    assert type(result.error) is SandboxError
    assert "host_fs_access" in str(result.error)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("asyncio.run(None, debug=True)", "takes no debug here"),
        ("asyncio.run(None, loop_factory=print)", "takes no loop_factory here"),
        ("asyncio.get_event_loop()", "asyncio.run(main())"),
        ("asyncio.new_event_loop()", "asyncio.run(main())"),
        ("asyncio.Runner()", "asyncio.run(main())"),
        ("asyncio.to_thread(print)", "call the function itself"),
    ],
)
def test_what_is_refused_says_what_to_write(source: str, said: str) -> None:
    result = _run(source)

    assert issubclass(type(result.error), SandboxError)
    assert said in str(result.error)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_that_is_dropped_with_its_loop_leaves_the_host_its_context() -> None:
    """The coroutine of a run that goes on when its loop is closed is dropped in a context of the host's."""

    async def main() -> None:
        task = asyncio.ensure_future(
            Sandbox(limits=Limits(seconds=5)).aexec("import asyncio\nawait asyncio.sleep(9)")
        )
        await asyncio.sleep(0.05)
        kept.append(task)

    kept: list[asyncio.Future[Result]] = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    loop.run_until_complete(main())
    loop.close()
    before = CURRENT.get()
    kept.clear()
    gc.collect()

    assert (before, CURRENT.get()) == (None, None)
