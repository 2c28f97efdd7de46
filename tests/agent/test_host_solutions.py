"""A task whose solution is a function of the host: it is tried first, under the same contract."""

from __future__ import annotations

import pytest
import reviewed_code

from agex import (
    Agent,
    CheckError,
    DefinitionError,
    FailEvent,
    ModelNotConfigured,
    SolvedBy,
    SuccessEvent,
    SystemNoteEvent,
    TaskFail,
    Versioned,
)
from agex.testing import ScriptedModel, python_action


def scripted(*codes: str, **settings: object) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def double(agent: Agent, solution: str = "reviewed_code:double", **settings: object):
    def f(x: int) -> int:
        """Double it."""

    return agent.task(solution=solution, **settings)(f)


def unconfigured() -> Agent:
    """Return an agent whose model there is not."""
    return Agent(model="nobody")


def notes(run) -> list[str]:
    return [event.message for event in run.events if isinstance(event, SystemNoteEvent)]


def test_the_function_solves_the_task_and_no_model_is_asked():
    agent, model = scripted()
    task = double(agent)
    run = task.run(4)
    assert (run.value, model.requests) == (8, [])
    assert notes(run) == ["Solved by reviewed_code:double; no model was asked."]
    assert [event.result for event in run.events if isinstance(event, SuccessEvent)] == [8]
    assert task.solved_by == SolvedBy(solution=1)


def test_where_it_raises_the_model_is_asked_and_the_event_says_so():
    agent, model = scripted("task_success(x + x)")
    task = double(agent)
    run = task.run(20)
    assert (run.value, len(model.requests)) == (40, 1)
    assert notes(run)[0].splitlines() == [
        "reviewed_code:double did not solve this call; the model is asked.",
        "ValueError: 20 is too large for me",
    ]
    assert task.solved_by == SolvedBy(model=1)


@pytest.mark.parametrize(
    ("solution", "settings", "said"),
    [
        ("reviewed_code:as_text", {}, "expected int"),
        ("reviewed_code:wrong", {"examples": [(((5,), {}), 10)]}, "f(5)"),
        ("reviewed_code:wrong", {"checks": [lambda value, inputs: value == 2 * inputs.x]}, "does not pass"),
    ],
    ids=["annotation", "example", "check"],
)
def test_where_it_breaks_the_contract_the_model_is_asked(solution, settings, said):
    agent, model = scripted("task_success(x + x)")
    run = double(agent, solution, **settings).run(20)
    assert (run.value, len(model.requests)) == (40, 1)
    assert said in notes(run)[0]


def test_without_fallback_no_model_is_asked_and_none_is_needed():
    task = double(unconfigured(), fallback=False)
    assert task(3) == 6
    with pytest.raises(TaskFail, match="ValueError: 20 is too large for me") as caught:
        task(20)
    assert isinstance(caught.value.__cause__, ValueError)
    (event,) = [one for one in caught.value.run.events if isinstance(one, FailEvent)]
    assert event.message == str(caught.value)


def test_a_model_that_is_not_configured_is_missed_only_when_it_is_to_be_asked():
    task = double(unconfigured())
    assert task(3) == 6
    with pytest.raises(ModelNotConfigured):
        task(20)


def test_examples_are_called_once_and_not_for_each_call():
    reviewed_code.CALLS.clear()
    agent, _ = scripted()
    task = double(agent, examples=[(((3,), {}), 6)])
    assert [task(n) for n in (1, 2)] == [2, 4]
    assert reviewed_code.CALLS == [3, 1, 2]


def test_an_error_of_a_check_itself_ends_the_run():
    def check(value, inputs):
        raise KeyError("mine")

    agent, model = scripted()
    with pytest.raises(CheckError):
        double(agent, checks=[check])(3)
    assert model.requests == []


def test_the_inputs_are_the_callers_own_objects():
    agent, _ = scripted()

    @agent.task(solution="builtins:sorted", fallback=False)
    def ordered(iterable: list[int], /) -> list[int]: ...

    assert ordered([2, 1]) == [1, 2]


async def test_an_async_task_takes_functions_of_both_kinds():
    agent, model = scripted()
    for solution in ("reviewed_code:later", "reviewed_code:double"):

        @agent.task(solution=solution)
        async def f(x: int) -> int:
            """Double it."""

        assert await f(4) == 8
    assert model.requests == []


@pytest.mark.parametrize(
    ("solution", "said"),
    [
        ("reviewed_code:missing", "is no function"),
        ("reviewed_code:NO_FUNCTION", "is no function"),
        ("no_such_module:f", "cannot be imported"),
        ("reviewed_code:of_two", "does not take the inputs"),
        ("reviewed_code:later", "is async"),
    ],
)
def test_a_function_that_cannot_be_the_tasks_is_an_error_of_the_definition(solution, said):
    agent, model = scripted()
    with pytest.raises(DefinitionError, match=said):
        double(agent, solution)(3)
    assert model.requests == []


@pytest.mark.parametrize("solution", ["reviewed_code", "reviewed_code.double", ":f", "a:b:c", "a b:c", "", 3])
def test_an_address_that_is_none_is_refused_when_the_task_is_made(solution):
    with pytest.raises(DefinitionError, match=r"package\.module:function"):
        double(Agent(), solution)


def test_fallback_without_a_solution_is_refused():
    with pytest.raises(DefinitionError, match="needs solution="):
        Agent().task(fallback=False)


def test_the_order_is_solution_then_kept_code_then_the_model():
    state = Versioned()
    agent, model = scripted("def f(x):\n    assert x < 100\n    return x * 2", "task_success(0)", state=state)
    task = double(agent, reuse=True)
    assert (task(20), task(30), task(3), task(200)) == (40, 60, 6, 0)
    assert task.solved_by == SolvedBy(solution=1, kept=1, model=2)
    assert len(model.requests) == 2
    assert (task.solution.used, task.solution.failed) == (1, 1)


def test_a_solution_that_calls_another_task_is_charged_for_it():
    inner, _ = scripted("task_success(x * 2)")

    @inner.task
    def half(x: int) -> int:
        """Do it."""

    reviewed_code.by_task = half
    agent, _ = scripted()
    run = double(agent, "reviewed_code:by_task").run(4)
    assert run.value == 8
    assert run.usage.requests == 1


def test_a_run_with_a_state_is_committed_with_its_value():
    state = Versioned()
    agent, _ = scripted(state=state)
    run = double(agent).run(4)
    assert run.commit == state.head
    assert double(agent).resume(run_id=run.run_id).value == 8


def test_with_samples_the_function_is_tried_once_before_them():
    agent, model = scripted("task_success(x + x)", "task_success(x + x)")
    task = double(agent, samples=2, choose="agree")
    assert (task(4), model.requests, task.solved_by) == (8, [], SolvedBy(solution=1))
    assert (task(20), len(model.requests), task.solved_by) == (40, 2, SolvedBy(solution=1, model=1))


def test_with_samples_no_model_is_asked_without_a_fallback():
    agent, model = scripted()
    task = double(agent, samples=2, fallback=False)
    with pytest.raises(TaskFail, match="did not solve this call"):
        task(20)
    assert model.requests == []
