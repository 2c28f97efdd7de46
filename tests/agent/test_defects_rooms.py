"""Defects of an earlier system about files, commands, workers, questions and long tasks."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from agex import Agent, FileEvent, IsolationUnavailable, Live, TaskClarify, Versioned, connect_fs, view
from agex.agent.call.events import OutputEvent
from agex.testing import ScriptedModel, python_action, terminal_action, write_file


def scripted(*replies: Any, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(one)] if isinstance(one, str) else one for one in replies])
    return Agent(model=model, **settings), model


def done(agent: Agent) -> Any:
    @agent.task
    def work() -> None:
        """Work."""

    return work.run()


@pytest.mark.parametrize("state", [None, Live, Versioned], ids=["no state", "Live", "Versioned"])
def test_what_is_in_the_workspace_is_told_whatever_the_state(state: Any) -> None:
    agent, model = scripted(
        [write_file("helpers.py", "def up(s: str) -> str:\n    'Upper.'\n    return s.upper()\n")],
        "task_success(None)",
        state=state() if state is not None else None,
    )
    done(agent)
    assert "up(s: str) -> str" in str(model.requests[-1].messages[-1].content)


def test_the_commands_of_the_terminal_are_in_the_prompt() -> None:
    agent, model = scripted("task_success(None)")

    @agent.terminal
    def census(context: Any) -> None:
        """Count the people."""

    done(agent)
    assert "census" in str(model.requests[0])
    assert "Count the people." in str(model.requests[0])


def test_the_arguments_of_a_command_change_nothing_of_the_host() -> None:
    before = [*sys.argv]
    agent, model = scripted(
        [write_file("show.py", "import sys\nprint(sys.argv)\n")],
        [terminal_action("python show.py one two")],
        "import sys\nsys._getframe",
        "task_success(None)",
    )
    done(agent)
    assert "['show.py', 'one', 'two']" in model.requests[2].messages[-1].content
    assert "Error" in model.requests[3].messages[-1].content
    assert sys.argv == before


def test_without_a_state_files_live_for_the_task_and_the_host_is_told() -> None:
    agent, _ = scripted(
        [write_file("a.txt", "A")], "task_success(None)", "open('a.txt')", "task_success(None)"
    )
    done(agent)
    second = done(agent)
    assert "FileNotFoundError" in "".join(e.text for e in second.events if isinstance(e, OutputEvent))
    with pytest.raises(ValueError, match="live for one task only"):
        agent.fs()


def test_files_are_among_the_events_of_the_action_that_changed_them() -> None:
    agent, _ = scripted(
        [write_file("a.txt", "A"), python_action("open('b.txt', 'w').write('B')")], "task_success(None)"
    )
    run = done(agent)
    changed = [[*event.added, *event.modified] for event in run.events if isinstance(event, FileEvent)]
    assert changed == [["a.txt"], ["b.txt"]]


def test_a_state_shows_its_variables_and_not_its_events() -> None:
    state = Versioned()
    agent, _ = scripted("total = 3", "task_success(None)", state=state)
    done(agent)
    assert view(state, focus="full") == "total = 3"


def test_a_worker_uses_the_hosts_own_object_and_no_copy() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self) -> int:
            self.count += 1
            return self.count

    counter = Counter()
    try:
        agent, _ = scripted("task_success([counter.add(), counter.add()])", isolation="process")
    except IsolationUnavailable as error:
        pytest.skip(f"there are no workers here: {error}")
    agent.module(counter, name="counter")

    @agent.task
    def work() -> list[int]: ...

    assert (work(), counter.count) == ([1, 2], 2)


def test_a_task_without_parameters_goes_on_after_its_question() -> None:
    agent, _ = scripted("task_clarify('Which?')", "task_success(None)")

    @agent.task
    def work() -> None: ...

    with pytest.raises(TaskClarify) as asked:
        work()
    assert asked.value.run.answer("This one.").ok


def test_one_long_task_is_shortened_while_it_lasts() -> None:
    turns = [f"print('{number}' * 15_000)" for number in range(30)]
    agent, model = scripted(*turns, "task_success(None)", max_iterations=40)
    done(agent)
    sizes = [len(str(request)) for request in model.requests]
    assert max(sizes) < 250_000
    assert {str(request.messages[:2]) for request in model.requests} == {str(model.requests[0].messages[:2])}


def test_a_workspace_of_a_limit_is_full_and_says_so() -> None:
    agent, _ = scripted(
        "open('big', 'w').write('x' * 2_000_000)", "task_success(None)", fs=connect_fs(max_size_mb=1)
    )
    run = done(agent)
    assert "OSError" in "".join(event.text for event in run.events if isinstance(event, OutputEvent))
