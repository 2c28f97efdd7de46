"""Where there are no threads: what is refused says what to write instead."""

from __future__ import annotations

import pytest

from agex import Agent
from agex._interpreter.threads import CAN_START
from agex.errors import IsolationUnavailable
from agex.sandbox import Limits, Sandbox
from agex.testing import ScriptedModel

pytestmark = pytest.mark.skipif(CAN_START, reason="this interpreter has threads")


def python(code: str) -> str:
    return f"```python\n{code}\n```"


async def test_an_async_function_is_awaited_by_the_agents_code() -> None:
    model = ScriptedModel([python("double(4)"), python("task_success(await double(4))")])
    agent = Agent(model=model)

    @agent.fn
    async def double(x: int) -> int:
        return 2 * x

    @agent.task
    async def work() -> int:
        """Work."""

    assert await work() == 8
    assert "Write: await double(...)" in str(model.requests[1])


async def test_a_task_of_another_agent_is_awaited_too() -> None:
    inner, outer = Agent(model=ScriptedModel([python("task_success(3)")])), Agent()

    @outer.fn
    @inner.task
    async def three() -> int:
        """Three."""

    outer.model = ScriptedModel([python("task_success(await three())")])

    @outer.task
    async def work() -> int:
        """Work."""

    assert await work() == 3


def test_a_time_limit_ends_python_code_and_says_so() -> None:
    result = Sandbox(limits=Limits(seconds=0.2)).exec("while True: pass")

    assert "0.2 s" in str(result.error)
    assert (result.enforcement.isolation, result.enforcement.time, result.enforcement.walls) == (
        "none",
        "flag",
        (),
    )


def test_a_time_limit_holds_where_the_stack_is_used_up() -> None:
    result = Sandbox(limits=Limits(seconds=0.2)).exec(
        "def f(n):\n  try: f(n)\n  except RecursionError: f(n)\nf(1)"
    )

    assert "0.2 s" in str(result.error)


@pytest.mark.parametrize("level", ["process", "kernel", "container"])
def test_levels_are_refused_when_an_agent_is_made(level: str) -> None:
    with pytest.raises(IsolationUnavailable):
        Agent(isolation=level)  # type: ignore[arg-type]


@pytest.mark.parametrize("limits", [Limits(memory_mb=100), Limits(open_files=10)])
def test_limits_that_cannot_be_held_are_refused(limits: Limits) -> None:
    with pytest.raises(IsolationUnavailable, match="leave them None"):
        Sandbox(limits=limits).exec("1")
