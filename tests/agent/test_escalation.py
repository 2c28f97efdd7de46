"""Several models of one agent: the next goes on where one fails too often, or cannot be asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agex import Agent, Budget, Live
from agex.errors import BudgetExceeded, DefinitionError, LLMFail, TaskTimeout
from agex.models.base import ModelError, Reply, Usage
from agex.testing import ScriptedModel

WRONG = "```python\nfound = 41\ntask_success('41')\n```"
RAISES = "```python\n1 / 0\n```"
RIGHT = "```python\ntask_success(42)\n```"
DOWN = ModelError("no connection", retryable=False)
LOOK = "```python\nprint('looking')\n```"


def agent_with(*models: Any, **settings: Any) -> Any:
    agent = Agent(list(models), **settings)

    @agent.task
    def answer(question: str) -> int:
        """Answer it."""

    return answer


def named(name: str, replies: list[Any], **settings: Any) -> ScriptedModel:
    model = ScriptedModel(replies, **settings)
    model.name = name
    return model


def test_after_two_failed_turns_the_next_model_goes_on() -> None:
    cheap, strong = named("cheap", [WRONG, RAISES, RIGHT]), named("strong", [RIGHT])
    run = agent_with(cheap, strong).run("What?")
    assert run.value == 42
    assert (len(cheap.requests), len(strong.requests), run.turns) == (2, 1, 3)
    assert [event.model for event in run.events if event.type == "action"] == [
        f"{cheap.provider}:cheap", f"{cheap.provider}:cheap", f"{strong.provider}:strong"
    ]  # fmt: skip
    [note] = [event.message for event in run.events if event.type == "system_note"]
    assert note == f"The task goes on with {strong.full_name}, because {cheap.full_name} failed 2 turns."


def test_the_next_model_is_told_in_short_what_was_tried_and_what_is_there() -> None:
    strong = named("strong", [RIGHT])
    agent_with(named("cheap", [WRONG, RAISES]), strong)("What?")
    told = strong.requests[0].messages[-1].content
    assert len(strong.requests[0].messages) == 2
    assert "Another model worked on this task before you, for 2 turns, and did not finish it." in told
    assert "Its turn 1 was:\n```python\nfound = 41" in told
    assert "ZeroDivisionError" in told
    assert "What its code made is still there: found." in told


def test_what_the_first_model_made_is_there_for_the_second() -> None:
    first = ["```python\ndef double(n):\n    return 2 * n\nbase = 21\n1 / 0\n```"]
    assert (
        agent_with(
            named("a", first), named("b", ["```python\ntask_success(double(base))\n```"]), escalate_after=1
        )("?")
        == 42
    )


@pytest.mark.parametrize(
    "replies",
    [[WRONG, RIGHT], [LOOK, LOOK, LOOK, RIGHT], [RAISES, LOOK, RIGHT]],
    ids=["one failed", "none failed", "failed and looked"],
)
def test_a_model_that_fails_less_often_goes_on_alone(replies: list[str]) -> None:
    strong = named("strong", [])
    assert agent_with(named("cheap", replies), strong)("?") == 42
    assert strong.requests == []


def test_failed_turns_count_though_others_stand_between() -> None:
    strong = named("strong", [RIGHT])
    run = agent_with(named("cheap", [RAISES, LOOK, RAISES]), strong).run("?")
    assert (run.value, run.turns) == (42, 4)


FAILED = {
    "an error": RAISES,
    "a wrong type": WRONG,
    "no code": "I do not know.",
    "a failed example": "```python\ndef answer(question):\n    return 1\n```",
    "a check": "```python\ntask_success(-1)\n```",
}


@pytest.mark.parametrize("reply", FAILED.values(), ids=FAILED)
def test_each_kind_of_failed_turn_counts(reply: str) -> None:
    agent = Agent([named("a", [reply]), named("b", [RIGHT])], escalate_after=1)

    @agent.task(checks=[lambda value, inputs: value > 0], examples=[((("the",), {}), 42)])
    def answer(question: str) -> int:
        """Answer it."""

    assert answer("?") == 42


def test_a_model_that_cannot_be_asked_is_followed_in_the_same_turn() -> None:
    run = agent_with(named("gone", [DOWN]), named("there", [RIGHT]), llm_retries=0).run("?")
    assert (run.value, run.turns) == (42, 1)
    [note] = [event.message for event in run.events if event.type == "system_note"]
    assert note.endswith("gone cannot be asked.")


def test_where_the_last_model_cannot_be_asked_the_call_fails_with_its_name() -> None:
    with pytest.raises(LLMFail) as caught:
        agent_with(named("a", [DOWN]), named("b", [DOWN]), llm_retries=0)("?")
    assert caught.value.model == "b"


def test_three_models_are_asked_one_after_the_other() -> None:
    models = [named("a", [RAISES]), named("b", [RAISES]), named("c", [RAISES, RIGHT])]
    assert agent_with(*models, escalate_after=1)("?") == 42
    assert [len(model.requests) for model in models] == [1, 1, 2]


def test_turns_and_budget_are_those_of_the_task_and_not_of_a_model() -> None:
    with pytest.raises(TaskTimeout):
        agent_with(named("a", [RAISES] * 2), named("b", [RAISES] * 2), max_iterations=3)("?")
    with pytest.raises(BudgetExceeded):
        agent_with(named("a", [RAISES] * 2), named("b", [RIGHT]), budget=Budget(calls=2))("?")


def test_usage_is_told_by_model() -> None:
    cheap = named("cheap", [Reply(text=RAISES, usage=Usage(requests=1, input_tokens=10, cost=0.01))])
    strong = named("strong", [Reply(text=RIGHT, usage=Usage(requests=1, input_tokens=20, cost=0.5))])
    run = agent_with(cheap, strong, escalate_after=1).run("?")
    assert {name: (usage.input_tokens, usage.cost) for name, usage in run.usage_by_model.items()} == {
        cheap.full_name: (10, 0.01), strong.full_name: (20, 0.5)
    }  # fmt: skip
    assert run.usage.input_tokens == 30


def test_a_small_model_may_be_followed_by_a_large_one_and_the_other_way_round() -> None:
    small, large = named("small", [RAISES], style="completion"), named("large", [RIGHT])
    assert agent_with(small, large, escalate_after=1)("?") == 42
    assert large.requests[0].actions[0] == "python_action"
    small, large = named("small", [RIGHT], style="completion"), named("large", [RAISES])
    assert agent_with(large, small, escalate_after=1)("?") == 42
    assert "ZeroDivisionError" in str(small.requests[0])


def test_async_tasks_escalate_as_well() -> None:
    agent = Agent([named("a", [RAISES]), named("b", [RIGHT])], escalate_after=1)

    @agent.task
    async def answer(question: str) -> int:
        """Answer it."""

    assert asyncio.run(answer("?")) == 42


def test_the_task_of_a_state_keeps_what_both_models_made() -> None:
    state = Live()
    first = named("a", ["```python\nx = 1\n1 / 0\n```"])
    second = named("b", ["```python\ny = x + 1\ntask_success(42)\n```"])
    agent_with(first, second, state=state, escalate_after=1)("?")
    assert (state["x"], state["y"]) == (1, 2)


@pytest.mark.parametrize("model", [[], (), [None]], ids=repr)
def test_a_list_of_no_model_is_refused(model: Any) -> None:
    with pytest.raises(DefinitionError, match="a list names at least one model"):
        Agent(model)


def test_a_count_of_no_turns_is_refused() -> None:
    with pytest.raises(DefinitionError, match="escalate_after=0"):
        Agent([named("a", [])], escalate_after=0)
