"""Calls side by side, calls within calls, and what of them is kept."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import agex
from agex.agent import ActionEvent, Agent, FailEvent, SuccessEvent, events, view
from agex.errors import IsolationUnavailable, StateConflict, TaskClarify, TaskFail, TaskTimeout
from agex.state import Disk, Live, Memory, Versioned
from agex.testing import ScriptedModel, python_action


def always(code: str, **settings: Any) -> Agent:
    return Agent(model=ScriptedModel(lambda messages: f"```python\n{code}\n```"), **settings)


def scripted(*replies: Any, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(one)] if isinstance(one, str) else one for one in replies])
    return Agent(model=model, **settings), model


def identity(agent: Agent) -> Any:
    @agent.task
    def same(x: int) -> int:
        """Return it."""

    return same


@pytest.mark.parametrize("state", [None, Live, Versioned], ids=["no state", "Live", "Versioned"])
def test_threads_that_share_a_state_get_their_own_answers(state: Any) -> None:
    agent = always("y = inputs.x\ntask_success(y)", state=state() if state is not None else None)
    task = identity(agent)

    def answered(n: int) -> Any:
        while True:
            with contextlib.suppress(StateConflict):  # another task bound y since this one began
                return task(n)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answered, range(16))) == list(range(16))


@pytest.mark.parametrize("state", [None, Live, Versioned], ids=["no state", "Live", "Versioned"])
async def test_coroutines_that_share_a_state_get_their_own_answers(state: Any) -> None:
    agent = always("y = inputs.x\ntask_success(y)", state=state() if state is not None else None)

    @agent.task
    async def same(x: int) -> int:
        """Return it."""

    async def answered(n: int) -> Any:
        while True:
            with contextlib.suppress(StateConflict):  # another task bound y since this one began
                return await same(n)

    assert await asyncio.gather(*(answered(n) for n in range(16))) == list(range(16))


def test_tasks_of_one_name_on_two_agents_share_nothing() -> None:
    first, _ = scripted("kept = inputs.x", "task_success([kept, inputs.x])", state=Versioned())
    second, _ = scripted("kept = inputs.text", "task_success([kept, inputs.text])", state=Versioned())

    def numbers() -> Any:
        @first.task
        def analyze(x: int) -> list[int]: ...

        return analyze

    def texts() -> Any:
        @second.task
        def analyze(text: str) -> list[str]: ...

        return analyze

    one, other = numbers(), texts()
    assert other("a") == ["a", "a"]
    assert one(1) == [1, 1]


def test_isolation_that_does_not_hold_is_refused_before_any_model_is_asked() -> None:
    model = ScriptedModel([])
    with pytest.raises((IsolationUnavailable, agex.DefinitionError)):
        identity(Agent(model=model, isolation="no such level"))(1)  # type: ignore[arg-type]
    assert model.requests == []


@pytest.mark.parametrize("branch", ["../../evil", "/tmp/evil", "a/../../evil", "..", "evil\0"])
def test_the_name_of_a_branch_is_never_a_path(branch: str, tmp_path: Path) -> None:
    home = tmp_path / "deep" / "state"
    home.parent.mkdir()
    before = sorted(path for path in tmp_path.rglob("*") if home not in path.parents and path != home)
    try:
        state = Versioned(Disk(home), branch=branch)
    except agex.AgexError:
        pass
    else:
        state["x"] = 1
        state.commit()
        state.close()
    after = sorted(path for path in tmp_path.rglob("*") if home not in path.parents and path != home)
    assert after == before


def test_a_task_without_parameters_can_ask_back() -> None:
    agent, _ = scripted("task_clarify('which year?')", "task_success(2)")

    @agent.task
    def report() -> int: ...

    with pytest.raises(TaskClarify, match="which year"):
        report()
    assert report() == 2


def test_cancelling_stops_a_task_without_a_state() -> None:
    ended: list[str] = []

    async def scenario() -> None:
        begun = asyncio.Event()
        agent, _ = scripted("wait()")

        @agent.fn
        async def wait() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("stopped")

        @agent.task
        async def f() -> int: ...

        running = asyncio.ensure_future(f())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())
    assert ended == ["stopped"]


def test_a_failed_run_is_not_repeated_and_is_kept_as_it_was() -> None:
    effects: list[int] = []
    agent, model = scripted("effect()", "task_fail('no')", state=Versioned())

    @agent.fn
    def effect() -> None:
        effects.append(1)

    with pytest.raises(TaskFail) as caught:
        identity(agent)(1)
    assert (len(effects), len(model.requests)) == (1, 2)
    assert isinstance(agent.state, Versioned)
    kept = [event.type for event in events(agent.state)]
    assert caught.value.run is not None
    assert kept == [event.type for event in caught.value.run.events]
    assert kept[-1] == FailEvent.model_fields["type"].default


def called(inner: Agent, outer: Agent) -> Any:
    @outer.fn
    @inner.task
    def work() -> int:
        """Work."""

    @outer.task
    def top() -> str:
        """Have the work done."""

    return top


def test_a_task_that_runs_out_of_turns_does_not_end_its_caller() -> None:
    inner, _ = scripted("0", max_iterations=1)
    code = "try:\n    work()\nexcept Exception as e:\n    task_success(type(e).__name__)"
    outer, _ = scripted(code)
    assert called(inner, outer)() == TaskTimeout.__name__


def test_a_model_that_fails_below_does_not_end_the_caller() -> None:
    from agex.models.base import ModelError

    inner = Agent(model=ScriptedModel([ModelError("down", retryable=False)]))
    outer, _ = scripted("try:\n    work()\nexcept Exception as e:\n    task_success(type(e).__name__)")
    assert called(inner, outer)() == "LLMFail"


def test_events_of_called_tasks_are_among_the_callers_own() -> None:
    inner, _ = scripted("task_success(1)", name="inner")
    outer, _ = scripted("task_success(str(work()))", name="outer", state=Live())
    assert called(inner, outer)() == "1"
    assert [(event.agent, event.type) for event in events(outer.state)] == [
        ("outer", "task_start"),
        ("outer", "action"),
        ("inner", "task_start"),
        ("inner", "action"),
        ("inner", "success"),
        ("outer", "success"),
    ]


def test_a_state_is_viewed_as_text_for_people() -> None:
    agent, _ = scripted("print('counted')\ntotal = 3", "task_success(total)", state=Live())
    assert identity(agent)(3) == 3
    assert view(agent.state) == "total = 3"


def test_an_events_commit_holds_its_effect() -> None:
    agent, _ = scripted("total = 3", "task_success(total)", state=Versioned())
    identity(agent)(1)
    state = agent.state
    assert isinstance(state, Versioned)
    action = next(event for event in events(state) if isinstance(event, ActionEvent))
    assert action.commit_hash is not None
    assert state.checkout(action.commit_hash)["total"] == 3
    assert [isinstance(event, SuccessEvent) for event in events(state)][-1]


def test_agents_share_a_state_in_memory() -> None:
    shared = Versioned(Memory())
    first, _ = scripted("total = 3\ntask_success(1)", state=shared)
    second, _ = scripted("task_success(total)", state=shared)
    identity(first)(1)
    assert identity(second)(1) == 3
