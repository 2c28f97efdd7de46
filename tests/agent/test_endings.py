"""Several pieces of code in one answer: a sequence, or a draft and its correction."""

from __future__ import annotations

from typing import Any

import pytest

from agex import Agent
from agex.agent import OutputEvent, SystemNoteEvent
from agex.testing import ScriptedModel, python_action
from agex.tinyagent import TinyCodeAgent


def blocks(*codes: str) -> str:
    return "\nThen:\n".join(f"```python\n{code}\n```" for code in codes)


def double(*replies: Any, **settings: Any) -> Any:
    agent = Agent(model=ScriptedModel(list(replies)), **settings)

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    return double


DRAFTS = {
    "two values": ["task_success(n + 2)", "task_success(n * 2)"],
    "three values": ["task_success(1)", "task_success(n + 2)", "task_success(n * 2)"],
    "two functions": ["def double(n):\n    return n + 2", "def double(n):\n    return n * 2"],
    "a value and a function": ["task_success(n + 2)", "def double(n):\n    return n * 2"],
    "a function and its call": ["def double(n):\n    return n * 2", "task_success(double(n))"],
    "a draft whose name the correction uses": ["r = n * 2\ntask_success(r + 1)", "task_success(r)"],
    "a draft with its own import": [
        "import math\ntask_success(math.floor(n))",
        "task_success(math.floor(n * 2))",
    ],
    "a draft that gives up": ["task_fail('cannot')", "task_success(n * 2)"],
    "a draft that asks": ["task_clarify('what is n?')", "task_success(n * 2)"],
    "both branches": ["if n:\n    task_success(1)\nelse:\n    task_success(2)", "task_success(n * 2)"],
    "a draft in try": ["try:\n    task_success(1)\nexcept ValueError:\n    pass", "task_success(n * 2)"],
    "words between": ["x = n", "task_success(x + 2)", "y = x", "task_success(n * 2)"],
    "a check that may give up": ["if n < 0:\n    task_fail('negative')", "task_success(n * 2)"],
    "a sequence": ["x = n", "task_success(x * 2)"],
    "a function and an example of it": ["def double(n):\n    return n * 2", "print(double(4))"],
    "an answer and an example of it": ["task_success(n * 2)", "result = task_success(4)"],
}


@pytest.mark.parametrize("codes", DRAFTS.values(), ids=DRAFTS.keys())
def test_of_blocks_that_each_end_the_task_the_last_counts(codes: list[str]) -> None:
    assert double(blocks(*codes))(21) == 42


def test_tool_calls_that_each_end_the_task_are_read_the_same_way() -> None:
    assert double([python_action("task_success(n + 2)"), python_action("task_success(n * 2)")])(21) == 42


def test_a_draft_is_not_carried_out_and_the_record_says_so() -> None:
    told: list[int] = []
    agent = Agent(model=ScriptedModel([blocks("tell(1)\ntask_success(1)", "tell(2)\ntask_success(2)")]))
    agent.fn(told.append, name="tell")

    @agent.task
    def count() -> int:
        """Count."""

    run = count.run()
    assert (run.value, told) == (2, [2])
    assert [
        "only the last" in event.message for event in run.events if isinstance(event, SystemNoteEvent)
    ] == [True]


def test_a_tiny_agents_last_answer_counts_too() -> None:
    agent = TinyCodeAgent(model=lambda messages: blocks("final_answer(23)", "final_answer(42)"))
    assert agent.run_sync("Double 21.") == "42"


def test_an_answer_has_so_many_actions() -> None:
    model = ScriptedModel(
        [[python_action(f"print({n})") for n in range(5)], "```python\ntask_success(1)\n```"]
    )
    agent = Agent(model=model, max_actions=3)

    @agent.task
    def count() -> int:
        """Count."""

    run = count.run()
    assert len([event for event in run.events if isinstance(event, OutputEvent)]) == 3
    assert "Only the first 3 of 5 actions were executed." in model.requests[1].messages[-1].content


def test_what_all_actions_of_an_answer_show_together_is_bounded() -> None:
    long, short = python_action("print('y' * 100_000)"), python_action("print('short')")
    model = ScriptedModel([[*[long] * 30, short], "```python\ntask_success(1)\n```"])
    agent = Agent(model=model, max_output_chars=3_000)

    @agent.task
    def count() -> int:
        """Count."""

    count()
    shown = model.requests[1].messages[-1].content
    assert "short" in shown
    assert len(shown) < 3_000 + 31 * 80
