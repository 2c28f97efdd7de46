"""What an agent may use: what of it the prompt shows, and that one agent's choice is its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agex.agent import Agent
from agex.agent.prompt.listing import LISTING_TOKENS, listing, tokens
from agex.testing import ScriptedModel, python_action


def scripted(*codes: str, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def run(agent: Agent) -> Any:
    @agent.task
    def f() -> Any:
        """Look."""

    return f()


@pytest.mark.parametrize("visibility", ["high", "medium"])
def test_a_large_library_takes_a_bounded_part_of_the_prompt(visibility: Any) -> None:
    agent, model = scripted("import pd\ntask_success(int(pd.Series([1, 2]).sum()))")
    agent.module(pd, name="pd", visibility=visibility)
    agent.module(np, visibility=visibility)
    assert run(agent) == 3
    assert tokens(listing(agent.registrations)) <= LISTING_TOKENS
    assert tokens(str(model.requests[0])) <= LISTING_TOKENS + 1_500


def test_a_function_of_medium_visibility_is_listed_by_its_signature() -> None:
    agent, model = scripted("task_success(scale(2.0))")

    @agent.fn(visibility="medium")
    def scale(x: float, by: float = 2.5) -> float:
        """Not to be shown."""
        return x * by

    assert run(agent) == 5.0
    prompt = str(model.requests[0])
    assert "def scale(x: float, by: float = 2.5) -> float" in prompt
    assert "Not to be shown" not in prompt


def test_what_one_agent_excludes_another_one_has() -> None:
    narrow, shown = scripted("np.median([1, 2, 3])", "task_success(0)")
    narrow.module(np, name="np", exclude=["median", "_*"])
    wide, _ = scripted("import np\ntask_success(float(np.median([1, 2, 3])))")
    wide.module(np, name="np")
    assert run(narrow) == 0
    assert "Error" in shown.requests[-1].messages[-1].content
    assert run(wide) == 2.0


def test_agents_of_one_name_are_two_agents() -> None:
    first, _ = scripted("task_success(1)", name="same")
    second, _ = scripted("task_success(2)", name="same")
    assert [run(first), run(second)] == [1, 2]


def test_registering_during_a_run_does_not_disturb_it() -> None:
    agent, _ = scripted("register()\ntask_success(len(dir()) > 0)", "import math\ntask_success(math.pi)")

    @agent.fn
    def register() -> None:
        agent.module(math)
        agent.fn(abs, name="positive")

    assert run(agent) is True
    assert run(agent) == math.pi
