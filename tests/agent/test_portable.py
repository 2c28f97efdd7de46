"""Tasks and agents in other processes."""

from __future__ import annotations

import inspect
import math
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import portable_tasks
import pytest

from agex import (
    Agent,
    Budget,
    BudgetExceeded,
    Disk,
    InputError,
    Live,
    LLMFail,
    SandboxError,
    StateConflict,
    TaskFail,
    Versioned,
)
from agex.testing import ScriptedModel


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_a_task_is_pickled_with_its_contract_and_its_agent() -> None:
    task = again(portable_tasks.double)
    assert task(4, ["x"]) == 9
    assert (task.__name__, task.__doc__) == ("double", portable_tasks.double.__doc__)
    assert inspect.signature(task).return_annotation is int
    assert task.agent.budget == Budget(calls=9)
    with pytest.raises(InputError, match="n"):
        task("four")
    with pytest.raises(BudgetExceeded) as raised:
        task(-9)
    assert "positive" in str(raised.value.run.events)


def test_a_task_defined_inside_a_function_is_pickled_too() -> None:
    agent = Agent(model=ScriptedModel(["```python\nimport math\ntask_success(math.isqrt(n))\n```"]))
    agent.module(math)

    @agent.task("Be exact.", reuse=True)
    def root(n: int) -> int: ...

    task = again(root)
    assert (task(9), task.definition.primer, task.definition.reuse) == (3, "Be exact.", True)


def test_an_async_task_stays_async() -> None:
    agent = Agent(model=ScriptedModel(["```python\ntask_success(n)\n```"]))

    @agent.task
    async def same(n: int) -> int: ...

    assert again(same).run(3).value == 3


def test_a_map_over_processes_gives_the_values_in_order() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert portable_tasks.double.map(range(1, 6), executor=pool) == [2, 4, 6, 8, 10]


def test_what_tasks_use_in_other_processes_is_charged_to_the_caller() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(int).result()  # it has its process, which agents' code cannot start
        outer = Agent(
            model=ScriptedModel(["```python\ntask_success(all_of([1, 2, 3]))\n```"] * 2),
            budget=Budget(calls=3),
        )
        outer.fn(lambda items: portable_tasks.double.map(items, executor=pool), name="all_of")

        @outer.task
        def work() -> list[int]: ...

        run = work.run()
    assert (run.value, run.usage.requests) == ([2, 4, 6], 4)


def test_a_failure_elsewhere_is_raised_here() -> None:
    agent = Agent(model=ScriptedModel(["```python\ntask_fail('no')\n```"]))

    @agent.task
    def fails(n: int) -> int: ...

    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(TaskFail, match="no"),
    ):
        fails.map([1], executor=pool)


def test_a_state_in_a_store_is_opened_again(tmp_path: Path) -> None:
    state = Versioned(Disk(tmp_path / "kept"), branch="work")
    state["x"] = 1
    state.commit()
    other = again(state)
    assert (other["x"], other.branch, other.head) == (1, "work", state.head)
    other.close()
    state.close()


@pytest.mark.parametrize("state", [Live(), Versioned()], ids=["live", "memory"])
def test_a_state_in_memory_says_that_it_stays_here(state: Any) -> None:
    with pytest.raises(TypeError, match="lives in this process"):
        pickle.dumps(state)


@pytest.mark.parametrize(
    "error",
    [
        BudgetExceeded("too much"),
        LLMFail("no reply", "openai", "gpt", 2),
        SandboxError("refused"),
        StateConflict("moved"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_are_pickled_with_all_they_say(error: Exception) -> None:
    other = again(error)
    assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))
