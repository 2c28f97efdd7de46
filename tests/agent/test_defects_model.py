"""What the model is asked, shown and believed."""

from __future__ import annotations

import socket
from typing import Any

import pytest

import agex
from agex.agent import ActionEvent, Agent, ErrorEvent, OutputEvent, SystemNoteEvent, event_from_json
from agex.errors import LLMFail, ModelNotConfigured, TaskFail
from agex.models.base import ModelError, Reply
from agex.testing import RecordingModel, ReplayModel, ScriptedModel, python_action


def scripted(*replies: Any, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(one)] if isinstance(one, str) else one for one in replies])
    return Agent(model=model, **settings), model


def double(agent: Agent) -> Any:
    @agent.task
    def f(x: int) -> int:
        """Double it."""

    return f


def last_shown(model: ScriptedModel) -> str:
    return model.requests[-1].messages[-1].content


def last_sent(model: ScriptedModel) -> str:
    return model.requests[-1].messages[-1].text


def test_a_run_and_its_events_need_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        asked.append(args)
        raise OSError("no network here")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    agent, _ = scripted("print(x)", "task_success(x * 2)")
    run = double(agent).run(4)
    texts = [event.model_dump_json() for event in run.events]
    assert run.value == 8
    assert run.usage.tokens > 0
    assert all(texts)
    assert asked == []


@pytest.mark.parametrize("code", ["print(1)\nimport os\nos.rem", "task_success(1"])
def test_a_cut_answer_is_not_executed_even_in_part(code: str) -> None:
    cut = Reply(text=f"```python\n{code}", truncated=True)
    agent, model = scripted(cut, "task_success(2)")
    run = double(agent).run(1)
    assert run.value == 2
    assert [event.text for event in run.events if isinstance(event, OutputEvent) and event.text] == [
        model.requests[1].messages[-1].content
    ]
    assert "cut off at the output limit, so nothing of it was executed" in last_shown(model)


PROMISES = [
    ("Names persist from turn to turn", "import math\ny = math.floor(2.5)", "print(math.ceil(y))", "2"),
    ("what was printed, the value of the last expression", "0", "print('said')\n40 + 2", "said\n42"),
    ("the traceback", "0", "a = 1\na / 0", "line 2"),
    ("Inputs are variables, also inputs.<name>", "0", "x is inputs.x", "True"),
    ("help() lists what you were given", "0", "help()", "Registered:"),
    ("dir(x) lists attributes", "0", "'real' in dir(x)", "True"),
    ("the number of the turn", "0", "1", "[turn 3 of 10]"),
    ("nothing of that code runs", "0", "print('ran')\nimport socket", "Nothing of this code was run:"),
]


@pytest.mark.parametrize(("promise", "first", "second", "shown"), PROMISES)
def test_what_the_rules_promise_the_model_is_what_happens(
    promise: str, first: str, second: str, shown: str
) -> None:
    agent, model = scripted(first, second, "task_success(0)")
    double(agent)(1)
    assert promise in " ".join(model.requests[0].messages[0].content.split())
    assert shown in last_sent(model)


@pytest.mark.parametrize(
    ("tools", "right", "wrong"),
    [(True, "Call python_action", "```python"), (False, "```python", "python_action")],
)
def test_the_rules_tell_of_one_way_to_answer(tools: bool, right: str, wrong: str) -> None:
    model = ScriptedModel([[python_action("task_success(1)")]], tools=tools)
    double(Agent(model=model))(1)
    rules = model.requests[0].messages[0].content
    assert right in rules
    assert wrong not in rules


def test_without_a_model_the_caller_is_told_the_ways_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agex.models.resolve._local_is_usable", lambda environ: False)
    with pytest.raises(ModelNotConfigured) as caught:
        double(Agent())(1)
    for way in ("Agent(model=", "export OPENAI_API_KEY", "local"):
        assert way in str(caught.value)


@pytest.mark.parametrize("name", ["openai", "openai:", ":gpt-5", "  "])
def test_a_model_string_that_names_no_model_is_refused_with_the_valid_forms(name: str) -> None:
    with pytest.raises(ModelNotConfigured, match='"provider:model"'):
        double(Agent(model=name))(1)


def test_what_one_turn_shows_is_bounded_however_it_was_printed() -> None:
    code = "for n in range(2000): print('y' * 1000, [n] * 1000)\nprint('z' * 10_000_000)\n['w' * 1000] * 1000"
    agent, model = scripted(code, "task_success(1)", max_output_chars=5_000)
    double(agent)(1)
    assert len(last_shown(model)) < 5_500


def test_an_error_shows_the_agents_own_lines() -> None:
    code = "def look(table, key):\n    return table[key]\n\nlook({}, 'k')"
    agent, model = scripted(code, "task_success(1)")
    double(agent)(1)
    shown = last_shown(model)
    assert ["line 4" in shown, "line 2, in look" in shown, "return table[key]" in shown] == [True] * 3
    assert shown.endswith("KeyError: 'k'")


def test_a_syntax_error_shows_the_line_and_where() -> None:
    agent, model = scripted("a = 1\nb = = 2", "task_success(1)")
    double(agent)(1)
    shown = last_shown(model)
    assert ['"<turn 1>", line 2' in shown, "b = = 2" in shown, "SyntaxError" in shown] == [True] * 3


def test_after_an_action_that_failed_the_model_is_told_of_that_and_of_nothing_else() -> None:
    agent, model = scripted([python_action("1 / 0"), python_action("y = 2")], "task_success(1)")
    double(agent)(1)
    shown = last_shown(model)
    assert "ZeroDivisionError" in shown
    assert shown.endswith("The action after this one was not executed.")
    assert "printed nothing" not in shown


def test_a_refused_request_is_not_repeated_and_its_events_are_kept() -> None:
    agent, model = scripted(ModelError("400 bad request", retryable=False), llm_retries=5)
    with pytest.raises(LLMFail) as caught:
        double(agent)(1)
    assert len(model.requests) == 1
    assert caught.value.run is not None
    assert [event.type for event in caught.value.run.events] == ["task_start", "error"]


def test_a_repeated_request_is_told_before_its_text_comes_again() -> None:
    broken = ModelError("the stream broke off", retryable=True)
    agent, _ = scripted(broken, "task_success(x)")
    told: list[str] = []
    double(agent)(
        1,
        on_event=lambda event: told.append(f"{event.type} {getattr(event, 'recoverable', '')}".strip()),
        on_token=lambda token: told.append("token"),
    )
    assert told[:2] == ["task_start", "error True"]
    assert told[2] == "token"


def test_what_a_model_says_beside_its_code_is_kept() -> None:
    agent, _ = scripted(Reply(text="hello user\n```python\ntask_success(2)\n```"))
    run = double(agent).run(1)
    (action,) = [event for event in run.events if isinstance(event, ActionEvent)]
    assert "hello user" in action.text


def test_a_run_has_its_cost_and_an_end_without_a_price_is_not_free() -> None:
    priced = Reply(text="```python\ntask_success(2)\n```", usage=agex.Usage(requests=1, cost=0.25))
    unpriced = Reply(text="```python\ntask_success(2)\n```", usage=agex.Usage(requests=1, cost=None))
    agent, _ = scripted(priced, unpriced)
    task = double(agent)
    assert [task.run(1).cost, task.run(1).cost] == [0.25, None]


@pytest.mark.parametrize("budget", [{"tokens": 1}, {"calls": 1}, {"usd": 0.25}])
def test_a_whole_call_can_be_bounded(budget: dict[str, Any]) -> None:
    priced = Reply(text="```python\ny = 1\n```", usage=agex.Usage(requests=1, input_tokens=1, cost=0.25))
    agent, _ = scripted(priced, "task_success(1)")
    with pytest.raises(agex.BudgetExceeded):
        double(agent)(1, budget=agex.Budget(**budget))


def test_every_event_goes_to_json_and_back() -> None:
    agent, _ = scripted("1 / 0", "task_success(x)")
    run = double(agent).run(1)
    back = [event_from_json(event.model_dump_json()) for event in run.events]
    assert [event.model_dump(mode="json") for event in back] == [
        event.model_dump(mode="json") for event in run.events
    ]


def test_answers_can_be_recorded_and_given_again(tmp_path: Any) -> None:
    path = tmp_path / "answers.jsonl"
    recorded = RecordingModel(ScriptedModel([[python_action("task_success(x * 2)")]]), path)
    first = double(Agent(model=recorded))(4)
    assert double(Agent(model=ReplayModel(path)))(4) == first == 8


def test_code_kept_from_an_earlier_call_says_in_the_events_that_it_was_used() -> None:
    agent, model = scripted("def f(x):\n    return x * 2")

    @agent.task(reuse=True)
    def f(x: int) -> int: ...

    assert [f(2), f(3)] == [4, 6]
    run = f.run(4)
    assert len(model.requests) == 1
    assert [type(event) for event in run.events if isinstance(event, SystemNoteEvent | ErrorEvent)] == [
        SystemNoteEvent
    ]


def test_setup_that_fails_ends_the_task_before_any_model_is_asked() -> None:
    agent, model = scripted()

    @agent.task(setup="print('before')\nundefined_function()")
    def f(x: int) -> int: ...

    with pytest.raises(TaskFail, match="undefined_function") as caught:
        f(1)
    assert model.requests == []
    assert caught.value.run is not None
    assert [event.type for event in caught.value.run.events] == ["task_start", "output", "error"]
