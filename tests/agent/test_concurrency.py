"""Many runs at once: right answers, and no more threads and memory than that takes."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from typing import Any

import pytest

from agex.agent import Agent
from agex.agent.execution.execution import Execution
from agex.agent.execution.worker_threads import MOST_THREADS as LIMIT
from agex.models.base import Reply, Request
from agex.testing import ScriptedModel

RUNS = 200


def always(code: str, **settings: Any) -> Agent:
    return Agent(model=ScriptedModel(lambda messages: f"```python\n{code}\n```"), **settings)


class AtOnce(ScriptedModel):
    """Answers nobody before everybody has asked."""

    def __init__(self, code: str, count: int) -> None:
        super().__init__(lambda messages: f"```python\n{code}\n```")
        self._left = count
        self._all = asyncio.Event()

    async def aask(self, request: Request, on_text: Any = None) -> Reply:
        self._left -= 1
        if self._left == 0:
            self._all.set()
        await self._all.wait()
        return self.ask(request, on_text)


def doubling(agent: Agent) -> Any:
    @agent.task
    async def f(x: int) -> int:
        """Double it."""

    return f


def threads() -> set[threading.Thread]:
    return set(threading.enumerate())


async def test_two_hundred_runs_that_are_under_way_at_once_get_their_own_answers() -> None:
    task = doubling(Agent(model=AtOnce("y = x\ntask_success(y * 2)", RUNS)))
    assert await asyncio.gather(*(task(n) for n in range(RUNS))) == [2 * n for n in range(RUNS)]


async def test_two_hundred_runs_take_no_thread_each() -> None:
    loop, full, released = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    held: list[int] = []
    agent = Agent(model=AtOnce("hold()\ntask_success(x * 2)", RUNS))

    @agent.fn
    def hold() -> None:
        held.append(1)
        if len(held) == LIMIT:
            loop.call_soon_threadsafe(full.set)
        released.wait()

    task = doubling(agent)
    before = threads()
    runs = asyncio.gather(*(task(n) for n in range(RUNS)))
    await full.wait()
    for _ in range(10 * RUNS):  # steps of the loop: more than all runs need to begin their actions
        await asyncio.sleep(0)
    begun = [thread.name for thread in threads() - before]
    released.set()
    assert await runs == [2 * n for n in range(RUNS)]
    assert sorted(begun) in (actions := ["agex action"] * LIMIT, [*actions, "agex-watchdog"])


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_more_actions_than_places_may_all_wait_for_tasks_that_they_called(kind: str) -> None:
    count = LIMIT * 3
    inner, outer = always("task_success(x + 1)"), Agent(model=AtOnce("task_success(work(x))", count))
    if kind == "async":

        @outer.fn(name="work")
        @inner.task
        async def work(x: int) -> int: ...

    else:

        @outer.fn(name="work")
        @inner.task
        def plain(x: int) -> int: ...

    task = doubling(outer)
    assert await asyncio.gather(*(task(n) for n in range(count))) == list(range(1, count + 1))


async def test_a_run_that_is_cancelled_while_it_waits_for_a_place_never_runs_its_code() -> None:
    loop, full, released = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    begun: list[int] = []
    agent = Agent(model=AtOnce("hold(x)\ntask_success(x)", LIMIT + 1))

    @agent.fn
    def hold(x: int) -> None:
        begun.append(x)
        if len(begun) == LIMIT:
            loop.call_soon_threadsafe(full.set)
        released.wait()

    task = doubling(agent)
    runs = [asyncio.ensure_future(task(n)) for n in range(LIMIT + 1)]
    await full.wait()
    (waiting,) = {*range(LIMIT + 1)} - {*begun}
    runs[waiting].cancel()
    with pytest.raises(asyncio.CancelledError):
        await runs[waiting]
    released.set()
    assert [await runs[n] for n in sorted(begun)] == sorted(begun)
    assert waiting not in begun


def alive() -> int:
    """Count the places where tasks run, once no thread is on its way out of one."""
    for thread in threads():
        if thread.name == "agex action":
            thread.join()
    gc.collect()
    # By type: what another test left of a guest's may answer for its class, with an error as well.
    return sum(type(each) is Execution for each in gc.get_objects())


def test_runs_that_are_over_leave_nothing_behind() -> None:
    before = alive()

    async def scenario() -> None:
        task = doubling(Agent(model=AtOnce("y = [x] * 1000\ntask_success(x * 2)", RUNS)))
        await asyncio.gather(*(task(n) for n in range(RUNS)))

    asyncio.run(scenario())
    assert alive() <= before  # what an earlier test left may have gone as well


def test_the_memory_of_many_runs_is_some_tens_of_kilobytes_each() -> None:
    task = doubling(always("task_success(x * 2)"))

    async def scenario(count: int) -> None:
        await asyncio.gather(*(task(n) for n in range(count)))

    asyncio.run(scenario(1))  # what is made once a process or a task is there now
    tracemalloc.start()
    try:
        asyncio.run(scenario(RUNS))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak / RUNS < 100_000
