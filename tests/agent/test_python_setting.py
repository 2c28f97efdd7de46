"""The setting ``python``: what it is by default, and where it may be what."""

from __future__ import annotations

import pytest

from agex import Agent, DefinitionError, TaskStartEvent
from agex.isolation import InProcessExecutor, ProcessExecutor, resolve_python
from agex.sandbox import Limits, Policy
from agex.testing import ScriptedModel, python_action


def test_code_in_this_process_is_guarded():
    assert Agent().python == "guarded"


def test_all_of_python_in_this_process_is_refused_with_the_reason():
    with pytest.raises(DefinitionError, match=r"no guards.*isolation='kernel' or 'container'"):
        Agent(python="full")


def test_all_of_python_may_run_in_a_process_that_is_no_boundary():
    assert Agent(python="full", isolation="process").python == "full"


def test_a_process_is_guarded_by_default():
    assert Agent(isolation="process").python == "guarded"


def test_an_unknown_python_is_refused_by_name():
    with pytest.raises(DefinitionError, match=r"python='half' is none of: guarded, full"):
        Agent(python="half")  # type: ignore[arg-type]


def test_an_executor_of_this_process_refuses_all_of_python():
    with pytest.raises(DefinitionError, match="python='full'"):
        InProcessExecutor().session(Policy.default(), Limits(), {}, python="full")


def test_guarded_python_may_be_asked_for_at_each_level():
    levels = ("none", "process", "kernel", "container")
    assert {resolve_python("guarded", level) for level in levels} == {"guarded"}


def test_the_page_of_an_agent_says_which_python_it_has():
    assert "in this process, guarded Python" in Agent()._repr_html_()


def test_the_enforcement_says_which_python_ran():
    executor = ProcessExecutor()
    try:
        session = executor.session(Policy.default(), Limits(), {}, python="guarded")
        assert session.run("1").enforcement.python == "guarded"
        session.close()
    finally:
        executor.close()


@pytest.mark.parametrize("python", ["guarded", "full"])
def test_the_prompt_and_the_first_event_say_which_python_it_is(python):
    model = ScriptedModel([[python_action("task_success(1)")]])
    agent = Agent(model=model, isolation="process", python=python)

    @agent.task
    def work() -> int:
        """Work."""

    run = work.run()
    prompt = str(model.requests[0])
    assert ("all of it, with every installed package" in prompt) == (python == "full")
    assert ("its standard library, without" in prompt) == (python == "guarded")
    assert [event.python for event in run.events if isinstance(event, TaskStartEvent)] == [python]
