"""The messages on the page of first mistakes are those that are given today."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agex import Agent, AgexError, Budget
from agex.state.redis import RedisStore
from agex.testing import ScriptedModel

PAGE = (Path(__file__).parents[2] / "docs" / "mistakes.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<written>.+?)` \| `(?P<told>.+?)` \|", re.MULTILINE)
IN_PROGRAM, _, IN_CODE = PAGE.partition("## In the agent's code")


def rows_of(text: str) -> dict[str, str]:
    return {found["written"]: found["told"] for found in ROW.finditer(text)}


def test_the_page_has_more_than_ten_mistakes() -> None:
    assert len(rows_of(IN_PROGRAM)) == 11
    assert len(rows_of(IN_CODE)) == 3


@pytest.mark.parametrize(("written", "told"), rows_of(IN_PROGRAM).items(), ids=rows_of(IN_PROGRAM))
def test_a_mistake_in_a_program_is_told_as_the_page_says(
    written: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)  # as if it were not installed
    agent = Agent(model=ScriptedModel([]))

    @agent.task
    def total(prices: list[float]) -> float:
        """Add up."""
        raise NotImplementedError

    names = {"Agent": Agent, "Budget": Budget, "RedisStore": RedisStore, "agent": agent, "total": total}
    with pytest.raises(AgexError) as caught:
        eval(written, names)
    message = str(caught.value)
    start, cut, _ = told.partition("...")
    assert message == told or (cut and message.startswith(start.rstrip())), message


@pytest.mark.parametrize(("written", "told"), rows_of(IN_CODE).items(), ids=rows_of(IN_CODE))
def test_a_mistake_in_the_agents_code_is_told_as_the_page_says(written: str, told: str) -> None:
    class Connection:
        def rows(self) -> int:
            return 3

    agent = Agent(model=ScriptedModel([f"```python\n{written}\n```", "```python\ntask_success(1)\n```"]))
    agent.module(Connection(), name="db")

    @agent.task
    def work() -> Any:
        """Work."""

    seen = [event.text for event in work.run().events if event.type == "output"]
    assert told in seen[0]
