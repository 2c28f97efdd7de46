"""Async tasks: the event loop stays free, async functions are bridged, cancellation arrives."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agex.agent import Agent, CancelledEvent, OutputEvent, TaskStartEvent
from agex.errors import DefinitionError, TaskFail
from agex.testing import ScriptedModel, python_action


def scripted(*codes, **settings):
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def always(code, **settings):
    return Agent(model=ScriptedModel(lambda messages: f"```python\n{code}\n```"), **settings)


def double(agent, **settings):
    async def f(x: int) -> int:
        """Double it."""

    return agent.task(**settings)(f)


async def test_an_async_task_is_awaited():
    agent, _ = scripted("task_success(x * 2)", "def f(x):\n    return x * 3", "task_success(1)")
    task = double(agent)
    assert await task(4) == 8
    assert (await task.arun(4)).value == 12


def test_run_of_an_async_task_needs_no_event_loop():
    agent, _ = scripted("task_success(x * 2)")
    assert double(agent).run(4).value == 8


async def test_fifty_coroutines_calling_one_task_get_their_own_answers():
    task = double(always("y = x\ntask_success(y * 2)"))
    answers = await asyncio.gather(*(task(n) for n in range(50)))
    assert answers == [2 * n for n in range(50)]


async def test_map_keeps_order_and_bounds_how_many_run():
    task = double(always("task_success(x * 2)"))
    assert await task.map(range(6), max_workers=2) == [0, 2, 4, 6, 8, 10]


async def test_map_raises_the_first_failure():
    with pytest.raises(TaskFail):
        await double(always("task_fail(str(x))")).map(range(3))


async def test_an_async_function_is_called_like_a_sync_one():
    agent, model = scripted("v = fetch(x)\ntask_success(v + 1)")
    loop = asyncio.get_running_loop()

    @agent.fn
    async def fetch(n: int) -> int:
        """Fetch it."""
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)
        return n * 10

    assert await double(agent)(4) == 41
    assert "Await fetch inside async functions" in model.requests[0].messages[1].content


async def test_an_error_of_an_async_function_reaches_the_agents_code():
    agent, _ = scripted("try:\n    fetch()\nexcept LookupError as e:\n    task_success(int(str(e)))")

    @agent.fn
    async def fetch() -> int:
        raise LookupError("5")

    assert await double(agent)(4) == 5


def test_in_a_sync_task_an_async_function_says_exactly_that_it_is_async():
    agent, model = scripted("fetch(x)", "task_success(1)")

    @agent.fn
    async def fetch(n: int) -> int: ...

    @agent.task
    def f(x: int) -> int: ...

    assert f(4) == 1
    shown = model.requests[1].messages[-1].content
    assert shown.endswith("'fetch' is an async function and cannot be called from a sync task.")
    assert (
        "Not available in this task, because they are async: fetch." in model.requests[0].messages[1].content
    )


async def test_code_may_await_at_the_top_level():
    agent, _ = scripted(
        "import asyncio\nawait asyncio.sleep(0)\nv = await fetch(x)\nv", "task_success(v + await fetch(1))"
    )

    @agent.fn
    async def fetch(n: int) -> int:
        return n * 10

    assert await double(agent)(4) == 50


async def test_an_async_task_finishes_by_an_async_function_of_its_own():
    agent, model = scripted(
        "async def f(x):\n    return await fetch(x) + 1", "async def f(x):\n    return await fetch(x)"
    )

    @agent.fn
    async def fetch(n: int) -> int:
        return n * 10

    task = double(agent, examples=[(((2,), {}), 20)])
    assert await task(4) == 40
    assert "f(2)" in model.requests[1].messages[-1].content


def test_a_sync_task_does_not_finish_by_an_async_function():
    agent, model = scripted("async def f(x):\n    return 1", "task_success(2)")

    @agent.task
    def f(x: int) -> int: ...

    assert f(4) == 2
    assert "def instead of async def" in model.requests[1].messages[-1].content


async def test_the_event_loop_stays_free_while_an_action_runs():
    agent, _ = scripted("wait()\ntask_success(1)")
    gate = threading.Event()
    waiting, loop = asyncio.Event(), asyncio.get_running_loop()

    @agent.fn
    def wait() -> None:
        loop.call_soon_threadsafe(waiting.set)
        assert gate.wait(10)

    task = asyncio.ensure_future(double(agent)(4))
    await waiting.wait()  # only a loop that turns while the agent's code waits gets here
    gate.set()
    assert await task == 1


async def test_handlers_may_be_async():
    agent, _ = scripted("task_success(1)")
    seen = []

    async def handler(event):
        await asyncio.sleep(0)
        seen.append(event)

    run = await double(agent).arun(4, on_event=handler)
    assert tuple(seen) == run.events


async def test_an_async_token_handler_is_refused():
    async def handler(token): ...

    with pytest.raises(DefinitionError, match="on_token=handler is async"):
        await double(always("1"))(4, on_token=handler)


async def test_cancelling_ends_the_running_action_and_is_recorded():
    agent, _ = scripted("started()\nwhile True:\n    try:\n        turns += 1\n    except:\n        pass")
    loop = asyncio.get_running_loop()
    running = asyncio.Event()
    seen = []

    @agent.fn
    def started() -> None:
        loop.call_soon_threadsafe(running.set)

    before = threading.active_count()
    task = asyncio.ensure_future(double(agent, setup="turns = 0")(4, on_event=seen.append))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(seen[-1], CancelledEvent)
    assert threading.active_count() <= before + 8


async def test_cancelling_reaches_a_waiting_async_function():
    agent, _ = scripted("fetch()")
    waiting, ended = asyncio.Event(), asyncio.Event()

    @agent.fn
    async def fetch() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(double(agent)(4))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_sub_task_of_an_async_task_tells_the_callers_async_handler():
    inner, _ = scripted("task_success(x + 1)")
    outer, _ = scripted("task_success(add_one(x) * 10)")

    @outer.fn
    @inner.task
    def add_one(x: int) -> int:
        """Add one."""

    seen = []

    async def handler(event):
        seen.append(event)

    assert await double(outer)(4, on_event=handler) == 50
    assert [event.task for event in seen if isinstance(event, TaskStartEvent)] == ["f", "add_one"]


async def test_an_async_sub_task_is_called_like_a_function_and_may_be_awaited():
    inner = always("task_success(x + 1)")
    outer, _ = scripted("v = add_one(x)", "task_success(v + await add_one(10))")

    @outer.fn
    @inner.task
    async def add_one(x: int) -> int:
        """Add one."""

    run = await double(outer).arun(4)
    assert run.value == 16
    assert [event.error for event in run.events if isinstance(event, OutputEvent)] == [False]


async def test_cancelling_a_task_ends_the_tasks_it_called():
    inner, _ = scripted("started()\nwhile True: pass")
    outer, _ = scripted("work(x)")
    loop = asyncio.get_running_loop()
    running = asyncio.Event()

    @inner.fn
    def started() -> None:
        loop.call_soon_threadsafe(running.set)

    @outer.fn
    @inner.task
    def work(x: int) -> int:
        """Work."""

    call = asyncio.ensure_future(double(outer)(4))
    await running.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_more_tasks_than_a_pool_has_threads_can_all_wait_for_tasks_they_call():
    inner = always("task_success(x + 1)")
    outer = always("task_success(add_one(x))")

    @outer.fn
    @inner.task
    async def add_one(x: int) -> int:
        """Add one."""

    answers = await asyncio.wait_for(asyncio.gather(*(double(outer)(n) for n in range(40))), 60)
    assert answers == [n + 1 for n in range(40)]


async def test_async_code_fans_out_over_an_async_task_that_it_was_given():
    inner = Agent(model=ScriptedModel(lambda messages: [python_action("task_success(text.upper())")]))
    outer = Agent(model=ScriptedModel([[python_action("task_success(await label.map('abc'))")]]))

    @outer.fn
    @inner.task
    async def label(text: str) -> str:
        """Label a text."""

    @outer.task
    async def all_of_them() -> list[str]: ...

    assert await all_of_them() == ["A", "B", "C"]
