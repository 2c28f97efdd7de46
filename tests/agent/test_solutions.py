"""Code that solved a task is kept with the state, and another process begins with it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from agex import Agent, Disk, Live, Solution, SystemNoteEvent, TaskFail, Versioned
from agex.testing import ScriptedModel, python_action

DOUBLE = "def f(x):\n    return x * 2"


def scripted(*codes: str, **settings: object) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def double(agent: Agent, **settings: object):
    def f(x: int) -> int:
        """Double it."""

    return agent.task(reuse=True, **settings)(f)


def notes(run) -> list[str]:
    return [event.message for event in run.events if isinstance(event, SystemNoteEvent)]


def solved(state: Versioned, **settings: object) -> Solution:
    """Let a process of its own, as it were, solve the task."""
    agent, _ = scripted(DOUBLE, state=state, **settings)
    task = double(agent)
    assert task(4) == 8
    found = task.solution
    assert found is not None
    return found


def test_another_agent_with_the_same_task_begins_with_the_code_in_the_state():
    state = Versioned()
    solved(state)
    agent, model = scripted(state=Versioned(state.store))
    run = double(agent).run(5)
    assert (run.value, model.requests) == (10, [])
    assert notes(run) == ["Solved by the code kept from an earlier call; no model was asked."]


PROGRAM = """
import sys
from agex import Agent, Disk, Versioned
from agex.testing import ScriptedModel, python_action

agent = Agent(model=ScriptedModel({replies}), state=Versioned(Disk(sys.argv[1])))

@agent.fn
def price(item: str) -> int:
    "Look it up."
    return len(item)

@agent.task(reuse=True)
def total(items: list[str]) -> int:
    "Add up the prices."

print(total(["pen", "ink"]), total.solution.used)
"""


def test_another_process_finds_it_on_the_disk(tmp_path: Path):
    reply = "```python\ndef total(items):\n    return sum(price(item) for item in items)\n```"
    for replies, said in (([reply], "6 0"), ([], "6 1")):
        program = PROGRAM.format(replies=replies)
        command = [sys.executable, "-c", program, str(tmp_path / "store")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == said


def test_the_solution_says_where_it_comes_from_and_how_often_it_was_used():
    state = Versioned()
    found = solved(state)
    agent, _ = scripted("task_success(0)", state=state)
    task = double(agent, checks=[lambda value, inputs: value < 10])
    assert (found.task, found.source, found.used, found.failed, found.last_failure) == ("f", DOUBLE, 0, 0, "")
    assert (task(1), task(2), task(50)) == (2, 4, 0)
    after = task.solution
    assert (after.run_id, after.model, after.created) == (found.run_id, found.model, found.created)
    assert (after.used, after.failed) == (2, 1)
    assert after.last_failure.startswith("f returned a wrong value:")
    assert (task.solved_by.kept, task.solved_by.model, task.solved_by.solution) == (2, 1, 0)


def test_it_is_no_variable_and_in_the_commit_that_ends_the_run():
    state = Versioned()
    solved(state)
    assert "f" not in list(state) or callable(state["f"])
    assert [name for name in state if "solution" in name] == []
    assert [key for key in state.entry_keys() if key.startswith("solution/f/")] != []
    assert state.history()[0].message == "f: done"
    assert len(state.history()) == 1


def test_a_use_costs_no_commit_more():
    state = Versioned()
    solved(state)
    before = len(state.history())
    agent, _ = scripted(state=state)
    double(agent)(5)
    assert len(state.history()) == before + 1


def changed_signature(agent: Agent):
    @agent.task(reuse=True)
    def f(x: int, y: int = 0) -> int:
        """Double it."""

    return f


def changed_docstring(agent: Agent):
    @agent.task(reuse=True)
    def f(x: int) -> int:
        """Treble it."""

    return f


def changed_primer(agent: Agent):
    return double(agent, primer="Be exact.")


def changed_agent(agent: Agent):
    agent.primer = "Be quick."
    return double(agent)


def more_registered(agent: Agent):
    agent.fn(len, name="size")
    return double(agent)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed_signature, "the signature is another"),
        (changed_docstring, "the signature is another"),
        (changed_primer, "the primer is another"),
        (changed_agent, "the agent's primer is another"),
        (more_registered, "registered size is new"),
    ],
)
def test_code_for_other_terms_is_not_used_and_the_event_says_why(change, said):
    state = Versioned()
    run_id = solved(state).run_id
    agent, model = scripted("def f(x, y=0):\n    return 0", state=state)
    run = change(agent).run(5)
    assert (run.value, len(model.requests)) == (0, 1)
    assert notes(run) == [
        f"The code kept from run {run_id} is not used, for it was written for other terms: {said}."
    ]


def test_a_changed_function_and_a_missing_one_are_named():
    state = Versioned()

    def look(x: int) -> int:
        """Look."""
        return x

    def agent_with(function, reply: str):
        agent, _ = scripted(reply, state=state)
        if function is not None:
            agent.fn(function, name="look")
        return double(agent)

    agent_with(look, "def f(x):\n    return look(x)")(1)

    def look(x: int, deep: bool = False) -> int:
        """Look."""
        return x

    assert notes(agent_with(look, DOUBLE).run(1))[0].endswith("registered look is another.")
    assert notes(agent_with(None, DOUBLE).run(1))[0].endswith("registered look is there no more.")


def test_a_type_of_the_signature_that_has_another_field_is_another():
    state = Versioned()

    def task_over(fields: dict[str, type], reply: str):
        point = dataclass(type("Point", (), {"__annotations__": fields}))
        agent, model = scripted(reply, state=state)

        def f(x):
            """Add up."""

        f.__annotations__ = {"x": point, "return": int}
        return agent.task(reuse=True)(f), point, model

    first, point, _ = task_over({"a": int}, "def f(x):\n    return x.a")
    assert first(point(a=1)) == 1
    again, point, model = task_over({"a": int}, "")
    assert (again(point(a=2)), model.requests) == (2, [])
    other, point, model = task_over({"a": int, "b": int}, "def f(x):\n    return x.a + x.b")
    run = other.run(point(a=1, b=2))
    assert (run.value, len(model.requests)) == (3, 1)
    assert notes(run)[0].endswith("the types are others.")


def test_the_code_for_the_terms_of_before_is_still_there():
    state = Versioned()
    solved(state)
    agent, model = scripted("def f(x):\n    return -x", state=state)
    assert double(agent, primer="Other.")(5) == -5
    assert double(agent)(5) == 10
    assert len(model.requests) == 1


def test_each_store_of_a_task_has_its_own_and_the_property_reads_that_of_the_last_call():
    one, other = Versioned(), Versioned()
    agent, _ = scripted(DOUBLE, "def f(x):\n    return x + x")
    task = double(agent)
    assert task.solution is None
    task.using(state=one)(1)
    assert task.solution.source == DOUBLE
    task.using(state=other)(1)
    assert task.solution.source == "def f(x):\n    return x + x"
    assert task.using(state=one).solution.source == DOUBLE
    assert task.using(state=None).solution is None


def test_without_a_state_and_with_a_live_one_it_is_kept_with_the_task():
    for state in (None, Live()):
        agent, model = scripted(DOUBLE, state=state)
        task = double(agent)
        assert (task(1), task(2), task.using(on_event=print)(3)) == (2, 4, 6)
        assert (len(model.requests), task.solution.used) == (1, 2)
        assert double(agent).solution is None


def test_a_task_without_reuse_keeps_nothing():
    state = Versioned()
    agent, _ = scripted(DOUBLE, state=state)

    @agent.task
    def f(x: int) -> int:
        """Double it."""

    assert f(1) == 2
    assert f.solution is None
    assert [key for key in state.entry_keys() if key.startswith("solution/")] == []


def test_a_failure_of_kept_code_is_kept_too_where_the_model_gives_up():
    state = Versioned()
    agent, _ = scripted("def f(x):\n    assert x < 10\n    return x", "task_fail('no')", state=state)
    task = double(agent)
    task(1)
    with pytest.raises(TaskFail, match="no"):
        task(11)
    assert task.solution.failed == 1
    assert "AssertionError" in task.solution.last_failure


def test_calls_at_once_are_all_counted():
    state = Versioned()
    solved(state)
    agent, _ = scripted(state=state)
    task = double(agent)
    assert task.map(range(8), max_workers=4) == [2 * n for n in range(8)]
    assert task.solution.used == 8


async def test_an_async_task_keeps_its_code_as_well():
    state = Versioned()
    for codes in ((DOUBLE,), ()):
        agent, _ = scripted(*codes, state=state)

        @agent.task(reuse=True)
        async def f(x: int) -> int:
            """Double it."""

        assert await f(3) == 6
    assert f.solution.used == 1


def test_a_disk_that_is_opened_again_has_it(tmp_path: Path):
    state = Versioned(Disk(tmp_path))
    found = solved(state)
    state.close()
    again = Versioned(Disk(tmp_path))
    agent, _ = scripted(state=again)
    assert double(agent).solution == found
    again.close()
