"""What a function of the host takes is not the time of the code that called it from a worker."""

from __future__ import annotations

import threading
import time

import pytest

from agex import Agent
from agex.errors import DefinitionError, EvalError
from agex.sandbox import Limits, Policy
from agex.testing import ScriptedModel, python_action

LIMIT = 0.4


def wait(seconds: float) -> str:
    threading.Event().wait(seconds)
    return "waited"


def apply(function):
    return function()


class Store:
    def wait(self, seconds):
        return wait(seconds)

    def __len__(self):
        wait(0.8)
        return 3


def run(executor, source, *, in_thread=False, **timeouts):
    policy = Policy.default()
    policy.fn(wait, timeout=timeouts.get("wait"))
    policy.fn(apply)
    policy.module(Store(), name="store")
    session = executor.session(policy, Limits(seconds=LIMIT), {})
    try:
        session.open()
        if not in_thread:
            return session.run(source)
        results = []
        runner = threading.Thread(target=lambda: results.append(session.run(source)))
        runner.start()
        runner.join()
        return results[0]
    finally:
        session.close()


@pytest.mark.parametrize("in_thread", [False, True], ids=["main", "thread"])
@pytest.mark.parametrize("call", ["wait(1.2)", "store.wait(1.2)", "len(store)", "apply(lambda: wait(1.2))"])
def test_a_function_of_the_host_is_not_cut_off_and_costs_the_code_nothing(executor, call, in_thread):
    result = run(executor, f"x = {call}\ny = sum(range(1000))\ny", in_thread=in_thread)
    assert (result.echo, result.error) == ("499500", None)


@pytest.mark.parametrize(
    "source",
    [
        "wait(0.6)\nwhile True: pass",
        "apply(lambda: [0 for _ in iter(int, 1)])",
        "def f():\n    for _ in range(30_000): pass\nwhile True: apply(f)",
        "def f():\n    wait(0.6)\n    while True: pass\napply(f)",
        "apply(lambda: sum(range(10 ** 13)))",
    ],
)
def test_the_time_of_the_code_goes_on_in_what_the_host_calls_back(executor, source):
    started = time.monotonic()
    result = run(executor, source)
    assert isinstance(result.error, EvalError)
    assert isinstance(result.error.__cause__, TimeoutError)
    assert time.monotonic() - started < 6


@pytest.mark.parametrize("in_thread", [False, True], ids=["main", "thread"])
def test_a_function_that_is_later_than_its_own_limit_ends_the_action_at_once(executor, in_thread):
    source = "try:\n    wait(5)\nexcept BaseException:\n    pass\nx = 1"
    started = time.monotonic()
    result = run(executor, source, in_thread=in_thread, wait=0.2)
    assert time.monotonic() - started < 3
    assert "wait() took longer than its timeout of 0.2 s" in str(result.error)
    assert isinstance(result.error.__cause__, TimeoutError)


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_registered_function_has_its_own_limit_and_the_next_action_goes_on(isolation):
    model = ScriptedModel([[python_action("wait(5)")], [python_action("task_success('went on')")]])
    agent = Agent(model=model, isolation=isolation, timeout_seconds=20.0)
    agent.fn(wait, timeout=0.2)

    @agent.task
    def work() -> str: ...

    started = time.monotonic()
    assert work() == "went on"
    assert time.monotonic() - started < 4
    assert "wait() took longer than its timeout of 0.2 s" in str(model.requests[1])


@pytest.mark.parametrize("isolation", ["none", "process"])
async def test_an_async_function_has_its_own_limit_too(isolation):
    import asyncio

    ended = []

    async def fetch() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return 1

    model = ScriptedModel([[python_action("fetch()")], [python_action("task_success('went on')")]])
    agent = Agent(model=model, isolation=isolation, timeout_seconds=20.0)
    agent.fn(fetch, timeout=0.2)

    @agent.task
    async def work() -> str: ...

    assert await work() == "went on"
    assert "fetch() took longer than its timeout of 0.2 s" in str(model.requests[1])
    assert ended == [True]


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_limit_that_is_none_is_refused_at_the_registration(timeout):
    with pytest.raises(DefinitionError, match="is no limit"):
        Agent().fn(wait, timeout=timeout)


def test_a_task_has_a_budget_instead_of_a_limit():
    agent, other = Agent(), Agent()

    @other.task
    def work() -> str: ...

    with pytest.raises(DefinitionError, match="Budget"):
        agent.fn(work, timeout=1.0)
