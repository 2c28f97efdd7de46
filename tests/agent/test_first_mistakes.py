"""The mistakes of a first hour: each is told with what was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agex import Agent, Budget, DefinitionError, ModelNotConfigured
from agex.errors import KeywordError
from agex.models.resolve import resolve_model
from agex.testing import ScriptedModel
from agex.tinyagent import ExecutionLimits


def agent_of(*replies: str) -> Agent:
    return Agent(ScriptedModel(list(replies)))


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a setting of an agent": (
        lambda: Agent(modle="local"),
        r"Agent\(\) takes no modle=; did you mean model=\?",
    ),  # type: ignore[call-arg]
    "a setting of a task": (
        lambda: agent_of().task(chekcs=[]),  # type: ignore[call-overload]
        r"agent.task\(\) takes no chekcs=; did you mean checks=\?",
    ),
    "a setting of a function": (
        lambda: agent_of().fn(len, visiblity="low"),  # type: ignore[call-overload]
        r"agent.fn\(\) takes no visiblity=; did you mean visibility=\?",
    ),
    "a setting that is like no other": (
        lambda: agent_of().terminal(print, zzz=1),
        r"agent.terminal\(\) takes no zzz=; it takes docstring, visibility\.",
    ),
    "the name of a module": (
        lambda: agent_of().module("json"),
        r"agent.module\('json'\): give the module itself: import json; agent.module\(json\)\.",
    ),
    "a limit of a budget": (lambda: Budget(token=1), r"Budget\(\) takes no token=; did you mean tokens=\?"),  # type: ignore[call-arg]
    "a limit that is a text": (lambda: Budget(calls="a"), r"Budget\(calls='a'\): give a number"),  # type: ignore[arg-type]
    "a number of an agent that is a text": (
        lambda: Agent(max_iterations="9"),  # type: ignore[arg-type]
        r"max_iterations='9': give a number",
    ),
    "a limit of a small agent": (
        lambda: ExecutionLimits(max_output_bytes="a"),  # type: ignore[arg-type]
        r"ExecutionLimits\(max_output_bytes='a'\): give a number",
    ),
    "a command without a parameter": (
        lambda: agent_of().terminal(lambda: None, name="build"),
        r"build is called with one argument, the context: write def build\(context\)",
    ),
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_told_with_what_was_meant(mistake: Callable[[], Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        mistake()


def test_an_unknown_keyword_is_a_type_error_as_of_any_function() -> None:
    with pytest.raises(TypeError):
        Agent(modle="local")  # type: ignore[call-arg]
    assert issubclass(KeywordError, DefinitionError)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("opneai:gpt-4o", "'openai:gpt-4o'"),
        ("gpt-4o", "'openai:gpt-4o'"),
        ("claude-sonnet-5-5", "'anthropic:claude-sonnet-5-5'"),
        ("loacl", "'local'"),
    ],
)
def test_a_misspelt_model_is_told_with_the_one_meant(name: str, meant: str) -> None:
    with pytest.raises(ModelNotConfigured, match=f"Did you mean {meant}"):
        resolve_model(name, {})


def test_the_name_of_a_usual_command_is_warned_of() -> None:
    def ls(context: Any) -> None: ...

    with pytest.warns(UserWarning, match="The command 'ls' stands in for the usual one"):
        agent_of().terminal(ls)


def test_code_that_imports_a_live_object_is_told_that_it_is_here() -> None:
    class Database:
        def rows(self) -> int:
            return 3

    agent = agent_of(
        "```python\nimport db\ntask_success(db.rows())\n```", "```python\ntask_success(db.rows())\n```"
    )
    agent.module(Database(), name="db")

    @agent.task
    def count() -> int:
        """Count the rows."""

    run = count.run()
    assert run.value == 3
    told = next(event.text for event in run.events if event.type == "output")
    assert "'db' is no module but an object that is here already: use it without an import" in told


def test_completions_offer_no_inner_methods() -> None:
    agent = agent_of("```python\ntask_success(1)\n```")

    @agent.task
    def one() -> int:
        """Return 1."""

    offered = {name for thing in (agent, one, one.run()) for name in dir(thing)}
    assert offered.isdisjoint({
        "place", "sandbox", "session", "task_files", "close", "reopen", "restore", "rebuilt", "definition",
    })  # fmt: skip
    assert {"fn", "task", "module", "using", "map", "value", "events", "answer"} <= offered
