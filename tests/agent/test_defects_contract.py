"""Errors, values and annotations: what callers of earlier systems of this kind ran into."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

import agex
from agex.agent import Agent
from agex.errors import AgexError, LLMFail, TaskCancelled, TaskClarify, TaskError, TaskFail, TaskTimeout
from agex.models.base import ModelError
from agex.testing import ScriptedModel, python_action


class Point(BaseModel):
    x: int


@dataclass
class Size:
    width: int


@dataclass
class Tree:
    name: str
    below: list[Tree]


def scripted(*codes: str, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


@pytest.mark.parametrize("error", [TaskFail, TaskClarify, TaskTimeout, TaskCancelled, LLMFail])
def test_every_end_of_a_task_is_an_ordinary_exception_of_the_package(error: type[TaskError]) -> None:
    assert issubclass(error, Exception)
    assert issubclass(error, AgexError)
    assert getattr(agex, error.__name__) is error


def test_except_exception_catches_a_task_that_failed() -> None:
    agent, _ = scripted("task_fail('no such city')")

    @agent.task
    def find() -> int: ...

    try:
        find()
    except Exception as error:  # noqa: BLE001 - that it is caught here is what the test is about
        caught = error
    assert str(caught) == "no such city"


def test_a_failure_of_the_model_says_who_failed_and_why() -> None:
    refused = ModelError("503 overloaded", retryable=False)
    agent = Agent(model=ScriptedModel([refused]))

    @agent.task
    def f() -> int: ...

    with pytest.raises(LLMFail) as caught:
        f()
    assert str(caught.value) == "testing:scripted gave no usable reply: 503 overloaded"
    assert (caught.value.provider, caught.value.model, caught.value.retries) == ("testing", "scripted", 0)


async def test_a_cancelled_task_tells_so_in_its_last_event() -> None:
    begun = asyncio.Event()
    agent, _ = scripted("wait()\ntask_success(1)")

    @agent.fn
    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    @agent.task
    async def f() -> int: ...

    seen: list[agex.Event] = []
    running = asyncio.ensure_future(f(on_event=seen.append))  # type: ignore[call-arg]
    await begun.wait()
    running.cancel("the user left")
    with pytest.raises(asyncio.CancelledError):
        await running
    assert isinstance(seen[-1], agex.CancelledEvent)
    assert seen[-1].message == "the user left"


REFUSED: list[tuple[Any, str]] = [
    (Point, "{'x': 'one'}"),
    (Size, "Size(width='wide')"),
    (list[int], "[0] * 150 + ['bad'] + [0] * 150"),
    (dict[str, int], "{str(n): n for n in range(300)} | {'200': 'bad'}"),
    (list[str], "np.zeros(3)"),
    (str, "np.zeros(3)"),
    (None, "5"),
    (int, "True"),
    (list[int], "(1, 2)"),
]


@pytest.mark.parametrize(("annotation", "value"), REFUSED)
def test_a_value_that_is_not_of_the_annotation_is_refused(annotation: Any, value: str) -> None:
    agent, model = scripted(f"import numpy as np\ntask_success({value})", "task_fail('refused')")
    agent.module(np)

    def f() -> Any:
        """Make it."""

    f.__annotations__["return"] = annotation
    with pytest.raises(TaskFail, match="refused"):
        agent.task(f)()
    assert "ContractError: result" in model.requests[1].messages[-1].content


def test_a_dict_for_a_model_comes_back_as_the_model() -> None:
    agent, _ = scripted("task_success({'x': 1})")

    @agent.task
    def locate() -> Point: ...

    assert locate() == Point(x=1)


def test_an_annotation_that_is_a_string_is_resolved_where_it_stands() -> None:
    @dataclass
    class Local:
        n: int

    agent, _ = scripted("task_success(Local(n=1))", "task_success(Tree('root', [Tree('leaf', [])]))")

    @agent.task
    def local() -> Local: ...

    @agent.task
    def tree() -> Tree: ...

    assert local() == Local(1)
    assert tree() == Tree("root", [Tree("leaf", [])])


def test_inputs_that_can_be_neither_copied_nor_pickled_are_used_as_they_are() -> None:
    agent, _ = scripted(
        "row = db.execute('select 7').fetchone()\n"
        "with lock:\n"
        "    task_success(row[0] + next(numbers) + sum(frame['a']))"
    )
    agent.cls(sqlite3.Connection, constructable=False)
    agent.cls(sqlite3.Cursor, constructable=False)
    agent.module(pd)

    @agent.task
    def use(db: sqlite3.Connection, lock: object, numbers: object, frame: pd.DataFrame) -> int: ...

    db = sqlite3.connect(":memory:")
    try:
        answer = use(db, threading.Lock(), iter([1]), pd.DataFrame({"a": [1, 1]}))
    finally:
        db.close()
    assert answer == 10


def test_the_agent_is_told_that_inputs_are_the_callers_own() -> None:
    agent, model = scripted("task_success(frame)")
    agent.module(pd)

    @agent.task
    def same(frame: pd.DataFrame) -> pd.DataFrame: ...

    given = pd.DataFrame({"a": [1]})
    assert same(given) is given
    told = " ".join(model.requests[0].messages[0].content.split())
    assert "They are the caller's own objects: change them only if the task says so." in told


def test_parameters_of_every_kind_are_bound_and_checked() -> None:
    agent, _ = scripted("task_success([a, *rest, b, c, options])")

    @agent.task
    def f(a: int, *rest: int, b: int = 1, c: int, **options: int) -> list[Any]: ...

    assert f(1, 2, 3, c=4, d=5) == [1, 2, 3, 1, 4, {"d": 5}]
    with pytest.raises(agex.InputError):
        f(1, "two", c=4)  # type: ignore[arg-type]


def test_a_default_that_can_change_is_not_shared_between_calls() -> None:
    agent, _ = scripted("x.append(1)\ntask_success(x)", "x.append(1)\ntask_success(x)")

    @agent.task
    def f(x: list[int] = []) -> list[int]: ...  # noqa: B006 - what happens to such a default is the question

    assert [f(), f()] == [[1], [1]]
