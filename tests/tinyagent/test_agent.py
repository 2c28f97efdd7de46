from __future__ import annotations

import asyncio
import inspect
import threading

import pytest

from agex.agent import Agent, Budget
from agex.errors import (
    BudgetExceeded,
    DefinitionError,
    LLMFail,
    ModelNotConfigured,
    StepLimitReached,
    TaskTimeout,
)
from agex.models.base import Model, ModelError, Reply, Usage
from agex.models.provider import PydanticAIModel
from agex.testing import ScriptedModel, ScriptExhausted, python_action
from agex.tinyagent import ExecutionLimits, TinyCodeAgent, TrustLevel, tool


def scripted(*codes):
    return ScriptedModel([f"```python\n{code}\n```" for code in codes])


def agent(*codes, **settings):
    model = scripted(*codes)
    return TinyCodeAgent(model=model, **settings), model


# -- as documented


def test_the_defaults_are_those_of_the_documentation():
    one = TinyCodeAgent()
    assert (one.tools, one.model, one.trust_level, one.limits) == (
        (),
        "gpt-4o-mini",
        TrustLevel.LOCAL,
        ExecutionLimits(),
    )
    assert (one.extra_imports, one.memory_manager, one.enable_pruning, one.prune_keep_last) == (
        (),
        None,
        False,
        3,
    )
    parameters = inspect.signature(TinyCodeAgent.run).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    assert defaults == {"max_steps": 10, "verbose": False, "return_result": False}
    assert inspect.signature(TinyCodeAgent.run_sync).parameters.keys() == parameters.keys()


def test_everything_is_given_by_its_name():
    with pytest.raises(TypeError):
        TinyCodeAgent([])  # type: ignore[misc]


async def test_run_is_awaited_and_gives_the_text_of_the_answer():
    one, model = agent("x = 20", "final_answer(x + 1)")
    assert await one.run("Compute it") == "21"
    assert model.requests[0].messages[1].content == "Compute it"


def test_run_sync_needs_no_event_loop():
    one, _ = agent("final_answer(21)")
    assert one.run_sync("Compute it") == "21"


async def test_run_sync_works_inside_a_running_event_loop():
    one, _ = agent("final_answer(21)")
    assert one.run_sync("Compute it") == "21"


def test_ten_steps_are_the_default():
    one = TinyCodeAgent(model=ScriptedModel(lambda messages: "```python\nx = 1\n```"))
    assert one.run_sync("a", return_result=True).steps_taken == 10


def test_the_parameters_of_run_may_be_given_in_order(capsys):
    one, _ = agent("x = 1")
    result = one.run_sync("a", 1, True, return_result=True)
    assert result.steps_taken == 1
    assert "Step 1" in capsys.readouterr().out


def test_the_last_step_is_told_to_be_the_last():
    one, model = agent("x = 1", "final_answer(x)")
    one.run_sync("a", max_steps=2)
    notes = [request.messages[-1].content.endswith("call final_answer now.") for request in model.requests]
    assert notes == [False, True]


# -- the result


def test_the_result_tells_the_whole_story():
    one, _ = agent("x = [1, 2]", "final_answer(x, verified_by='looking')")
    result = one.run_sync("a", return_result=True)
    assert (result.output, result.state, result.error, result.steps_taken) == ("[1, 2]", "completed", None, 2)
    assert (result.final_answer.value, result.final_answer.source) == ([1, 2], "normal")
    assert (result.trust_level, result.enforcement.isolation) == (TrustLevel.LOCAL, "none")
    assert result.usage.requests == 2
    assert result.duration_seconds > 0
    assert result.metadata["model"] == "testing:scripted"


def test_a_long_answer_is_not_cut():
    one, _ = agent("final_answer('x' * 50_000)")
    assert one.run_sync("a") == "x" * 50_000


def test_a_model_that_cannot_be_asked_is_an_error_or_a_record_of_one():
    failing = ScriptedModel(lambda messages: ModelError("no such model", retryable=False))
    with pytest.raises(LLMFail, match="no such model"):
        TinyCodeAgent(model=failing).run_sync("a")
    result = TinyCodeAgent(model=failing).run_sync("a", return_result=True)
    assert (result.state, result.output, type(result.error)) == ("error", "", LLMFail)


def test_an_error_carries_what_happened():
    one, _ = agent("x = 1")
    with pytest.raises(StepLimitReached) as raised:
        one.run_sync("a", max_steps=1)
    kinds = [type(event).__name__ for event in raised.value.run.events]
    assert kinds == ["TaskStartEvent", "ActionEvent", "OutputEvent", "ErrorEvent"]
    assert isinstance(raised.value, TaskTimeout)
    assert isinstance(raised.value, RuntimeError)


def test_the_limit_of_steps_shows_the_last_error():
    one, _ = agent("1 / 0")
    with pytest.raises(StepLimitReached, match="ZeroDivisionError"):
        one.run_sync("a", max_steps=1)


def test_pieces_of_code_are_counted_beside_turns():
    blocks = "\n".join("```python\nn = n + 1 if 'n' in dir() else 1\nprint(n)\n```" for _ in range(5))
    one = TinyCodeAgent(model=ScriptedModel(lambda messages: blocks), limits=ExecutionLimits(max_steps=7))
    result = one.run_sync("a", return_result=True)
    assert result.state == "step_limit_reached"
    assert [step.output for step in result.steps] == ["1\n2\n3\n4\n5", "6\n7"]
    assert "ExecutionLimits.max_steps" in str(result.error)


def test_the_limit_of_steps_bounds_the_turns_as_well():
    one = TinyCodeAgent(
        model=ScriptedModel(lambda messages: "```python\nx = 1\n```"), limits=ExecutionLimits(max_steps=3)
    )
    assert one.run_sync("a", return_result=True).steps_taken == 3


@pytest.mark.parametrize("steps", [0, -1])
def test_a_run_needs_a_step(steps):
    with pytest.raises(DefinitionError, match="needs at least 1 step"):
        TinyCodeAgent(model=scripted()).run_sync("a", max_steps=steps)


def test_an_answer_without_code_is_told_so():
    one = TinyCodeAgent(model=ScriptedModel(["It is 42.", "```python\nfinal_answer(42)\n```"]))
    result = one.run_sync("a", return_result=True)
    assert "Your answer contained no code to run" in result.steps[0].error
    assert result.output == "42"


def test_a_cut_answer_is_not_executed():
    cut = Reply(text="```python\nfinal_answer('cut", truncated=True)
    one = TinyCodeAgent(model=ScriptedModel([cut, "```python\nfinal_answer('whole')\n```"]))
    assert one.run_sync("a") == "whole"


def test_a_tool_call_of_the_model_is_executed_as_code_is():
    one = TinyCodeAgent(model=ScriptedModel([[python_action("final_answer(3)")]], tools=True))
    result = one.run_sync("a", return_result=True)
    assert (result.output, result.steps[0].code) == ("3", "final_answer(3)")


# -- models


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o-mini", "openai:gpt-4o-mini"),
        ("gpt-4o", "openai:gpt-4o"),
        ("o3-mini", "openai:o3-mini"),
        ("claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
        ("gemini-3.8-flash", "google:gemini-3.8-flash"),
        ("openrouter:openai/gpt-4o", "openrouter:openai/gpt-4o"),
    ],
)
def test_a_model_may_be_named_without_its_provider(name, meant):
    model = TinyCodeAgent(model=name).resolved_model()
    assert f"{model.provider}:{model.name}" == meant


def test_a_name_that_no_provider_is_known_for_is_said():
    with pytest.raises(ModelNotConfigured, match='"provider:model"'):
        TinyCodeAgent(model="my-model").run_sync("a")


def test_a_key_can_be_given():
    model = TinyCodeAgent(model="gpt-4o-mini", api_key="given").resolved_model()
    assert isinstance(model, PydanticAIModel)
    assert model.profile.tools


def test_a_missing_key_is_said_at_the_first_run():
    one = TinyCodeAgent(model="gpt-4o-mini")
    with pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        one.run_sync("a")


def test_a_key_is_not_shown():
    one = TinyCodeAgent(model="gpt-4o-mini", api_key="s3cret")
    assert "s3cret" not in repr(one) + repr(one.resolved_model())


def test_a_model_of_pydantic_ai_can_be_given():
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    model = FunctionModel(
        lambda messages, info: ModelResponse(parts=[TextPart("```python\nfinal_answer(5)\n```")])
    )
    assert TinyCodeAgent(model=model).run_sync("a") == "5"


# -- verbose


def test_verbose_shows_each_thing_in_a_panel(capsys):
    one, _ = agent("explore('it')\nprint('seen')", "1 / 0", "final_answer(42, verified_by='eye')")
    one.run_sync("Find [bold]it[/bold]", verbose=True)
    out = capsys.readouterr().out
    for text in (
        "─ Task ─", "Find [bold]it[/bold]", "─ Step 1 · ", "print('seen')", "─ Seen at step 1 · ",
        "[EXPLORE] it",
        "ZeroDivisionError", "─ Final answer ─", "Verified by: eye",
    ):  # fmt: skip
        assert text in out


def test_nothing_is_shown_unasked(capsys):
    one, _ = agent("print('seen')", "final_answer(42)")
    one.run_sync("a")
    assert capsys.readouterr().out == ""


def test_what_the_code_prints_cannot_move_the_cursor_of_the_terminal(capsys):
    one, _ = agent("print('\\x1b[2J\\x1b[1;1Hgone')", "final_answer('\\x1b[31m')")
    one.run_sync("a", verbose=True)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out


async def test_verbose_works_in_an_async_run_and_when_it_fails(capsys):
    one, _ = agent("x = 1")
    result = await one.run("a", max_steps=1, verbose=True, return_result=True)
    assert result.state == "step_limit_reached"
    assert "─ Failed ─" in capsys.readouterr().out


# -- at the same time


async def test_runs_of_one_agent_at_the_same_time_have_their_own_variables():
    def answer(messages):
        if len(messages) == 2:
            return f"```python\nmine = {messages[1].content!r}\n```"
        return "```python\nfinal_answer(mine)\n```"

    one = TinyCodeAgent(model=ScriptedModel(answer))
    answers = await asyncio.gather(*(one.run(f"task {n}") for n in range(20)))
    assert answers == [f"task {n}" for n in range(20)]


async def test_a_cancelled_run_ends_its_code():
    started = threading.Event()
    ended = threading.Event()

    @tool
    def begin() -> None:
        """Say that the code runs."""
        started.set()

    @tool
    def never() -> None:
        """Say that it went on."""
        ended.set()

    one, _ = agent("begin()\nwhile True: pass\nnever()", tools=[begin, never])
    running = asyncio.ensure_future(one.run("a"))
    assert await asyncio.to_thread(started.wait, 30)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not ended.is_set()


# -- inside a task of an agent


class Priced(Model):
    """Answers with what it was made with, for a thousand tokens."""

    name, provider = "priced", "testing"

    def ask(self, request, on_text=None):
        usage = Usage(requests=1, input_tokens=1_000)
        return Reply(text="x", actions=(python_action("x = 1"),), usage=usage)


def test_a_run_inside_of_a_task_counts_in_the_budget_of_the_task():
    outer = Agent(model=ScriptedModel(["```python\nsolve('a')\n```"]), budget=Budget(tokens=2_500))
    tiny = TinyCodeAgent(model=Priced())

    @outer.fn
    def solve(text: str) -> str:
        """Solve it."""
        return tiny.run_sync(text)

    @outer.task
    def work() -> str: ...  # type: ignore[empty-body]

    with pytest.raises(BudgetExceeded) as raised:
        work()
    assert raised.value.run.usage.tokens > 2_500


def test_a_script_that_runs_out_is_no_record():
    with pytest.raises(ScriptExhausted):
        TinyCodeAgent(model=scripted()).run_sync("a", return_result=True)
