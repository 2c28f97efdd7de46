"""Tasks that are functions of other agents."""

from __future__ import annotations

import threading

import pytest

from agex.agent import Agent, Budget, events
from agex.errors import (
    BudgetExceeded,
    DefinitionError,
    LLMFail,
    ModelNotConfigured,
    TaskFail,
    WeightsCorrupt,
)
from agex.models.base import ModelError
from agex.state import Live
from agex.testing import ScriptedModel, python_action


def scripted(*codes, **settings):
    model = ScriptedModel([code if isinstance(code, Exception) else [python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def pair(outer, inner):
    """Make a task of *outer* that can call a task of *inner*."""

    @outer.fn
    @inner.task
    def specialist(topic: str) -> str:
        """Find out about a topic."""

    @outer.task
    def boss(x: int) -> str: ...

    return boss


def ways_to_ask(outer, inner, way):
    """Make a task of *inner*, and one of *outer* that can ask it, the one way or the other."""

    @inner.task
    def specialist(topic: str) -> str: ...

    def calling(topic: str) -> str:
        return specialist(topic)

    outer.fn(specialist) if way == "a task" else outer.fn(calling, name="specialist")

    @outer.task
    def boss() -> str: ...

    return specialist, boss


def test_a_task_registered_with_another_agent_is_a_function_of_it():
    inner, _ = scripted("task_success(topic.upper())", name="inner")
    outer, model = scripted("task_success(specialist('cats'))", name="outer")
    run = pair(outer, inner).run(1)
    assert run.value == "CATS"
    assert "def specialist(topic: str) -> str:" in model.requests[0].messages[0].content
    assert [(event.agent, type(event).__name__) for event in run.events] == [
        ("outer", "TaskStartEvent"),
        ("outer", "ActionEvent"),
        ("inner", "TaskStartEvent"),
        ("inner", "ActionEvent"),
        ("inner", "SuccessEvent"),
        ("outer", "SuccessEvent"),
    ]
    assert run.turns == 1
    assert run.usage.requests == 2


@pytest.mark.parametrize(
    ("answers", "kind", "says"),
    [
        (["task_fail('cannot')"], "TaskFail", "cannot"),
        (["task_clarify('which?')"], "TaskClarify", "which?"),
        (["1", "2"], "TaskTimeout", "not finished in 2 turns"),
        ([ModelError("bad key", retryable=False)], "LLMFail", "bad key"),
    ],
)
def test_the_failure_of_a_sub_task_is_an_exception_the_agent_can_catch(answers, kind, says):
    inner, _ = scripted(*answers, max_iterations=2)
    outer, _ = scripted(
        "try:\n    specialist('x')\nexcept Exception as e:\n    task_success(f'{type(e).__name__}: {e}')"
    )
    value = pair(outer, inner)(1)
    assert value.startswith(f"{kind}: ")
    assert says in value


def test_an_uncaught_failure_of_a_sub_task_is_shown_and_the_task_goes_on():
    inner, _ = scripted("task_fail('cannot')")
    outer, model = scripted("specialist('x')", "task_success('alone')")
    assert pair(outer, inner)(1) == "alone"
    assert "TaskFail: cannot" in model.requests[1].messages[-1].content


def test_the_failure_that_the_agent_sees_does_not_carry_the_sub_tasks_run():
    inner, _ = scripted("task_fail('cannot')", state=Live({"secret": 1}))
    outer, _ = scripted("try:\n    specialist('x')\nexcept Exception as e:\n    task_success(str(e.run))")
    assert pair(outer, inner)(1) == "None"


@pytest.mark.parametrize(
    "read",
    [
        "e.__context__",
        "e.__cause__",
        "e.run",
        "getattr(e, 'run')",
        "operator.attrgetter('run')(e)",
        "'{0.run}'.format(e)",
        "e._run",
    ],
)
@pytest.mark.parametrize("way", ["a task", "a function that calls one"])
def test_the_failure_leads_to_no_run_nor_to_the_errors_behind_it(way, read):
    inner, _ = scripted("secret = 1\ntask_fail('no')", name="inner", state=Live())
    code = f"import operator\ntry: specialist('')\nexcept Exception as e: task_success(str({read}))"
    outer, _ = scripted(code, "task_success('refused')", name="outer")

    _, boss = ways_to_ask(outer, inner, way)

    assert boss() in {"None", "refused"}


def test_the_host_reads_the_run_of_a_failure_also_for_an_agent():
    inner, _ = scripted("task_fail('no')", name="inner")
    outer, _ = scripted("task_success(turns())", name="outer")

    @inner.task
    def specialist() -> str: ...

    @outer.fn
    def turns() -> int:
        with pytest.raises(TaskFail) as caught:
            specialist()
        return caught.value.run.turns

    @outer.task
    def boss() -> int: ...

    assert boss() == 1


@pytest.mark.parametrize("way", ["a task", "a function that calls one"])
def test_the_failure_of_a_model_leads_to_no_request_of_a_provider(way):
    failure = ModelError("refused", retryable=False)
    failure.__cause__ = ValueError("Authorization: secret")
    inner, _ = scripted(failure, failure, name="inner")
    code = "try: specialist('')\nexcept Exception as e: task_success(repr([e, e.__context__, e.__cause__]))"
    outer, _ = scripted(code, name="outer")

    specialist, boss = ways_to_ask(outer, inner, way)

    said = boss()
    assert "LLMFail" in said
    assert said.endswith(", None, None]")
    with pytest.raises(LLMFail) as caught:  # the host is told all
        specialist("")
    assert caught.value.__cause__ is failure


def test_a_wrong_argument_is_the_agents_error():
    inner, model = scripted("task_success('x')")
    outer, _ = scripted("try:\n    specialist(5)\nexcept TypeError as e:\n    task_success('TypeError')")
    assert pair(outer, inner)(1) == "TypeError"
    assert model.requests == []


def test_agent_code_cannot_set_call_time_keywords():
    inner, model = scripted("task_success('x')")
    outer, _ = scripted(
        "try:\n    specialist('x', budget=None)\nexcept TypeError as e:\n    task_success('TypeError')"
    )
    assert pair(outer, inner)(1) == "TypeError"
    assert model.requests == []


def test_a_mistake_of_the_host_is_the_hosts_error_and_not_fed_to_the_model():
    inner = Agent(model="nonsense")
    outer, model = scripted(
        "try:\n    specialist('x')\nexcept BaseException:\n    pass", "task_success('no')"
    )
    with pytest.raises(ModelNotConfigured) as caught:
        pair(outer, inner)(1)
    assert len(model.requests) == 1
    assert caught.value.run.task == "boss"


def test_an_error_in_a_handler_is_the_hosts_error_through_a_sub_task_too():
    inner, _ = scripted("task_success('x')", name="inner")
    outer, _ = scripted("try:\n    specialist('x')\nexcept Exception:\n    pass\ntask_success('no')")

    def handler(event):
        if event.agent == "inner":
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        pair(outer, inner)(1, on_event=handler)


def test_a_budget_holds_for_the_whole_tree():
    inner, _ = scripted("1", "2", "3")
    outer, _ = scripted("specialist('x')", "task_success('no')")
    with pytest.raises(BudgetExceeded, match="3 calls"):
        pair(outer, inner)(1, budget=Budget(calls=3))


def test_the_clock_of_an_action_stands_still_during_a_sub_task():
    # The guest's own sleep is what is tested: it is longer than the outer task's limit.
    inner = Agent(
        model=ScriptedModel([[python_action("import time\ntime.sleep(0.6)\ntask_success('done')")]])
    )
    outer, _ = scripted("task_success(specialist('x'))", timeout_seconds=0.3)
    assert pair(outer, inner)(1) == "done"


def test_a_host_function_that_calls_a_task_belongs_to_the_tree_too():
    inner, _ = scripted("task_success(topic)", name="inner")
    outer, _ = scripted("task_success(via_host('cats'))", name="outer")

    @inner.task
    def specialist(topic: str) -> str: ...

    @outer.fn
    def via_host(topic: str) -> str:
        return specialist(topic)

    @outer.task
    def boss(x: int) -> str: ...

    run = boss.run(1)
    assert run.value == "cats"
    assert [event.agent for event in run.events].count("inner") == 3


def test_the_state_of_the_caller_keeps_the_events_of_the_tree():
    inner, _ = scripted("task_success('x')", name="inner")
    outer, _ = scripted("task_success(specialist('x'))", state=Live())
    run = pair(outer, inner).run(1)
    assert events(outer.state) == list(run.events)


def test_an_agent_cannot_have_its_own_task_as_a_function():
    agent, _ = scripted()

    with pytest.raises(DefinitionError, match="a task of this agent"):

        @agent.fn
        @agent.task
        def f() -> int: ...


def test_failures_of_a_task_outside_any_other_carry_its_run():
    inner, _ = scripted("task_fail('cannot')")

    @inner.task
    def f() -> int: ...

    with pytest.raises(TaskFail) as caught:
        f()
    assert caught.value.run.error is caught.value


def test_a_model_that_cannot_be_asked_is_an_error_with_all_there_is_to_know():
    agent, _ = scripted(ModelError("no such model", retryable=False))

    @agent.task
    def f() -> int: ...

    with pytest.raises(LLMFail) as caught:
        f()
    assert (caught.value.provider, caught.value.model) == ("testing", "scripted")
    assert [type(event).__name__ for event in caught.value.run.events] == ["TaskStartEvent", "ErrorEvent"]


def test_a_sub_tasks_model_is_looked_up_with_the_hosts_powers(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    inner = Agent(model=f"local:{broken}")
    outer, _ = scripted("specialist('x')")
    with pytest.raises(WeightsCorrupt, match=r"broken\.gguf"):
        pair(outer, inner)(1)


def test_a_sub_tasks_handlers_have_the_hosts_powers(tmp_path):
    inner, _ = scripted("task_success('x')")
    outer, _ = scripted("task_success(specialist('x'))")
    log = tmp_path / "log"

    def handler(event):
        with log.open("a") as file:
            file.write(f"{event.task} ")

    pair(outer, inner)(1, on_event=handler)
    assert log.read_text().split() == ["boss", "boss", "specialist", "specialist", "specialist", "boss"]


def chain(length, is_async):
    """Make so many tasks, each of which calls the next."""
    inner = None
    for number in range(length):
        call = "1" if inner is None else f"f{number - 1}()"
        agent = Agent(model=ScriptedModel([f"```python\ntask_success({call})\n```"] * 3))
        if inner is not None:
            agent.fn(inner, name=f"f{number - 1}")

        def f() -> int: ...
        async def g() -> int: ...

        inner = agent.task(g if is_async else f)
    return inner


@pytest.mark.parametrize("length", [80, 400])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_tasks_that_are_nested_too_deep_are_an_error_of_the_host(length, is_async):
    task = chain(length, is_async)
    with pytest.raises(DefinitionError, match="nested too deep") as caught:
        task.run()
    assert caught.value.run is not None


def test_tasks_that_are_nested_deep_work():
    assert chain(30, False)() == 1


def test_a_stack_that_is_short_already_is_the_same_error():
    task = chain(45, False)

    def below(count):
        return below(count - 1) if count else task()

    with pytest.raises(DefinitionError, match="nested too deep"):
        below(500)


ECHO = ScriptedModel(lambda messages: [python_action("task_success(text.upper())")])


def labelling(inner_model, code, **settings):
    """Make a task whose agent can fan out over ``label``, a task of another agent."""
    outer, model = scripted(*([code] if isinstance(code, str) else code), name="outer", **settings)

    @outer.fn
    @Agent(model=inner_model, name="inner").task
    def label(text: str) -> str:
        """Label a text."""

    @outer.task
    def all_of_them() -> list[str]: ...

    return all_of_them, model


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_code_fans_out_over_a_task_that_it_was_given(isolation):
    work, model = labelling(ECHO, "task_success(label.map(['a', 'b', 'c']))", isolation=isolation)
    assert work() == ["A", "B", "C"]
    assert "NAME.map(items) calls one for each item" in str(model.requests[0])


def test_the_calls_of_a_fan_out_run_side_by_side():
    meeting = threading.Barrier(3, timeout=30)

    def answer(messages):
        meeting.wait()
        return [python_action("task_success(text)")]

    work, _ = labelling(ScriptedModel(answer), "task_success(label.map(('a', 'b', 'c'), max_workers=3))")
    assert work() == ["a", "b", "c"]


def test_a_failure_in_a_fan_out_is_an_error_that_the_code_can_catch():
    failing = ScriptedModel(lambda messages: [python_action("task_fail(f'no label for {text}')")])
    work, _ = labelling(
        failing, "try:\n    label.map(['a'])\nexcept Exception as error:\n    task_success([str(error)])"
    )
    assert work() == ["no label for a"]


def test_a_fan_out_is_charged_to_the_budget_of_the_caller():
    work, _ = labelling(ECHO, "task_success(label.map(['a'] * 20, max_workers=1))")
    with pytest.raises(BudgetExceeded):
        work.using(budget=Budget(calls=5))()
    assert len(ECHO.requests) < 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("label.map(itertools.repeat('a'))", "map() takes at most 10,000 items"),
        ("label.map(['a'], max_workers=0)", "max_workers must be a whole number, 1 or more"),
        ("label.map(7)", "'int' object is not iterable"),
        ("label.map(int(text) for text in ['x'])", "invalid literal for int() with base 10: 'x'"),
    ],
)
def test_a_wrong_fan_out_is_an_error_of_the_code(call, message):
    code = f"import itertools\ntry:\n    {call}\nexcept Exception as error:\n    task_success([str(error)])"
    work, _ = labelling(ECHO, code)
    assert work() == [message]
