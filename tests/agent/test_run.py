"""A run while it lasts, when it is cancelled, and after a question."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agex import (
    ActionEvent,
    Agent,
    Budget,
    CancelledEvent,
    ClarifyEvent,
    Run,
    SuccessEvent,
    SystemNoteEvent,
    TaskCancelled,
    TaskClarify,
    TaskFail,
    TaskStartEvent,
    TaskTimeout,
    Versioned,
)
from agex.errors import BudgetExceeded
from agex.models.base import Usage
from agex.testing import ScriptedModel

ASK = 'task_clarify("Which currency?")'


def python(code: str) -> str:
    return f"```python\n{code}\n```"


class Gate:
    """A model's answer that waits until it is let through, and says that it was asked."""

    def __init__(self, code: str) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()
        self._code = code

    def __call__(self, _messages: Any) -> str:
        self.asked.set()
        assert self.open.wait(30)
        return python(self._code)


def agent_of(*replies: Any, **settings: Any) -> Agent:
    return Agent(
        model=ScriptedModel([each if callable(each) else python(each) for each in replies]), **settings
    )


def kinds(run: Run[Any]) -> list[str]:
    return [type(event).__name__ for event in run.events]


# -- while it lasts


def test_a_started_run_gives_its_events_as_they_happen_and_then_its_value() -> None:
    gate = Gate("task_success(2)")
    agent = agent_of("x = 1", gate)

    @agent.task
    def count() -> int: ...

    run = count.start()
    events = iter(run)
    first = [next(events), next(events)]
    assert [type(event) for event in first] == [TaskStartEvent, ActionEvent]
    assert gate.asked.wait(30)
    assert (run.done(), run.value, run.ok) == (False, None, False)
    gate.open.set()
    assert type([*first, *events][-1]) is SuccessEvent
    assert (run.result(), run.value, run.ok, run.turns) == (2, 2, True, 2)


async def test_an_async_run_is_iterated_and_awaited_in_its_loop() -> None:
    agent = agent_of("x = 1", "task_success(x + 1)")

    @agent.task
    async def count() -> int: ...

    run = count.start()
    seen = [type(event).__name__ async for event in run]
    assert seen == kinds(run)
    assert await run == 2


async def test_a_run_of_a_sync_task_can_be_awaited_too() -> None:
    agent = agent_of("task_success(2)")

    @agent.task
    def count() -> int: ...

    assert await count.start() == 2


def test_a_run_that_is_over_yields_its_events_again() -> None:
    agent = agent_of("task_success(2)")

    @agent.task
    def count() -> int: ...

    run = count.run()
    assert tuple(run) == run.events
    assert tuple(run) == run.events


def test_a_result_that_is_not_there_in_time_is_a_timeout_and_the_run_goes_on() -> None:
    gate = Gate("task_success(2)")
    agent = agent_of(gate)

    @agent.task
    def count() -> int: ...

    run = count.start()
    with pytest.raises(TimeoutError, match="goes on"):
        run.result(timeout=0.01)
    gate.open.set()
    assert run.result(timeout=30) == 2


def test_what_ended_a_started_task_is_raised_where_its_value_is_asked_for() -> None:
    agent = agent_of('task_fail("no data")')

    @agent.task
    def count() -> int: ...

    run = count.start()
    with pytest.raises(TaskFail, match="no data") as raised:
        run.result(timeout=30)
    assert raised.value.run is run
    assert run.error is raised.value


def test_an_argument_that_does_not_fit_is_told_before_the_run_begins() -> None:
    agent = agent_of()

    @agent.task
    def count(n: int) -> int: ...

    with pytest.raises(TypeError, match="n"):
        count.start("three")  # type: ignore[arg-type]


def test_an_error_of_a_handler_is_told_with_the_value() -> None:
    agent = agent_of("task_success(2)")

    @agent.task
    def count() -> int: ...

    def handle(_event: Any) -> None:
        raise KeyError("handler")

    with pytest.raises(KeyError, match="handler"):
        count.using(on_event=handle).start().result(timeout=30)


# -- cancelled


def test_cancelling_gives_a_request_up() -> None:
    gate = Gate("task_success(2)")
    agent = agent_of(gate)

    @agent.task
    def count() -> int: ...

    run = count.start()
    assert gate.asked.wait(30)
    assert run.cancel()
    with pytest.raises(TaskCancelled) as raised:
        run.result(timeout=30)
    gate.open.set()
    assert raised.value.run is run
    assert kinds(run)[-1] == CancelledEvent.__name__


@pytest.mark.parametrize(
    "loop",
    ["while True: pass", "while True:\n    try:\n        while True: pass\n    except BaseException: pass"],
)
def test_cancelling_stops_a_running_action_and_keeps_what_was_committed(loop: str) -> None:
    state = Versioned()
    began = threading.Event()
    agent = agent_of("x = 1", f"began()\n{loop}", state=state)
    agent.fn(began.set, name="began")

    @agent.task
    def count() -> int: ...

    run = count.start()
    assert began.wait(30)
    assert run.cancel()
    with pytest.raises(TaskCancelled):
        run.result(timeout=30)
    assert state["x"] == 1
    assert run.commit == state.head


async def test_cancelling_ends_the_tasks_that_a_task_has_called() -> None:
    gate = Gate("task_success(1)")
    inner, outer = agent_of(gate), agent_of("task_success(deep())")

    @outer.fn
    @inner.task
    async def deep() -> int: ...

    @outer.task
    async def count() -> int: ...

    run = count.start()
    await asyncio.to_thread(gate.asked.wait, 30)
    assert run.cancel()
    with pytest.raises(TaskCancelled):
        await run
    gate.open.set()
    assert kinds(run).count("CancelledEvent") == 2


async def test_cancelling_the_awaiting_task_is_asyncios_own_affair() -> None:
    gate = Gate("task_success(1)")
    agent = agent_of(gate)

    @agent.task
    async def count() -> int: ...

    awaiting = asyncio.create_task(count())
    await asyncio.to_thread(gate.asked.wait, 30)
    awaiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await awaiting
    gate.open.set()


def test_a_run_that_is_over_cannot_be_cancelled() -> None:
    agent = agent_of("task_success(2)")

    @agent.task
    def count() -> int: ...

    run = count.run()
    assert (run.cancel(), run.value) == (False, 2)


# -- a question


def test_an_answered_question_lets_the_task_go_on_where_it_stopped() -> None:
    agent = agent_of(f"total = 12\n{ASK}", 'task_success(f"{total} EUR")')

    @agent.task
    def price() -> str: ...

    with pytest.raises(TaskClarify) as asked:
        price()
    run = asked.value.run
    assert run.answer("Euros, please.") is run
    assert (run.value, run.error, run.turns) == ("12 EUR", None, 2)
    assert [kind for kind in kinds(run) if kind != "OutputEvent"] == [
        "TaskStartEvent",
        "ActionEvent",
        ClarifyEvent.__name__,
        SystemNoteEvent.__name__,
        "ActionEvent",
        "SuccessEvent",
    ]
    last = agent.resolved_model().requests[-1]  # type: ignore[attr-defined]
    assert "Euros, please." in last.messages[-1].content


async def test_an_async_task_is_answered_in_its_loop() -> None:
    agent = agent_of(ASK, 'task_success("1 EUR")')

    @agent.task
    async def price() -> str: ...

    with pytest.raises(TaskClarify) as asked:
        await price()
    assert (await asked.value.run.aanswer("Euros")).value == "1 EUR"


def test_each_answer_is_good_for_one_question() -> None:
    agent = agent_of(ASK, ASK, 'task_success("1 EUR")')

    @agent.task
    def price() -> str: ...

    with pytest.raises(TaskClarify) as first:
        price()
    run = first.value.run
    with pytest.raises(TaskClarify) as second:
        run.answer("what?")
    assert second.value.run is run
    assert run.answer("Euros").value == "1 EUR"
    with pytest.raises(RuntimeError, match="no answer"):
        run.answer("again")


def test_an_answer_gives_the_task_its_turns_again() -> None:
    agent = agent_of("1", ASK, "1", "2", max_iterations=2)

    @agent.task
    def price() -> str: ...

    with pytest.raises(TaskClarify) as asked:
        price()
    with pytest.raises(TaskTimeout) as late:
        asked.value.run.answer("Euros")
    assert late.value.run.turns == 4


def test_an_answer_does_not_renew_the_budget() -> None:
    agent = agent_of(ASK, 'task_success("1 EUR")', budget=Budget(calls=1))

    @agent.task
    def price() -> str: ...

    with pytest.raises(TaskClarify) as asked:
        price()
    with pytest.raises(BudgetExceeded):
        asked.value.run.answer("Euros")
    assert asked.value.run.usage.requests == Usage(requests=1).requests


def test_a_run_that_asked_nothing_takes_no_answer() -> None:
    agent = agent_of("task_success(2)")

    @agent.task
    def count() -> int: ...

    with pytest.raises(RuntimeError, match="no answer"):
        count.run().answer("Euros")
