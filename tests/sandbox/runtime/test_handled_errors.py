"""An error that the host handles while guest code runs is nothing that guest code learns of.

Stopped by: sandbox.run, sandbox.stdlib.traceback.
"""

from __future__ import annotations

import traceback

import pytest

from agex import Agent, TaskClarify
from agex.sandbox import Sandbox
from agex.testing import ScriptedModel


class HostError(Exception):
    def __init__(self):
        super().__init__("a text of the host")


def fail():
    raise HostError


def during_handling(code):
    session = Sandbox().session()
    try:
        fail()
    except HostError:
        return session.run(code, filename="<turn 1>")


@pytest.mark.parametrize(
    "code",
    ["1 / 0", "def f():\n    raise ValueError('x')\nf()", "try:\n    {}['a']\nexcept KeyError:\n    1 / 0"],
)
def test_the_traceback_of_guest_code_does_not_begin_with_it(code):
    shown = during_handling(code).traceback
    assert shown.startswith("Traceback (most recent call last):")
    assert "HostError" not in shown


@pytest.mark.parametrize(
    "code",
    [
        "repr(error.__context__)",
        "str(error.__context__)",
        "repr([error.__context__, error.__cause__])",
        "repr(error.__context__.__context__)",
        "repr(error.__context__.args)",
    ],
)
def test_guest_code_cannot_reach_it_through_its_own_errors(code):
    result = during_handling(f"try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    told = {code}")
    assert "HostError" not in str(result.namespace.get("told"))
    assert "a text of the host" not in result.traceback + str(result.namespace.get("told"))


def test_the_context_of_guest_codes_own_errors_stays():
    shown = during_handling("try:\n    {}['a']\nexcept KeyError:\n    1 / 0").traceback
    assert shown.count("During handling of the above exception") == 1
    assert "KeyError: 'a'" in shown


def test_the_host_still_handles_its_error_afterwards():
    session = Sandbox().session()
    try:
        fail()
    except HostError:
        session.run("1 / 0")
        told = traceback.format_exc()
    assert "HostError: a text of the host" in told
    assert "Blank" not in told


def test_a_question_that_is_answered_does_not_stand_in_later_tracebacks():
    model = ScriptedModel(
        [f"```python\n{code}\n```" for code in ("task_clarify('which?')", "1 / 0", "task_success(1)")]
    )

    @Agent(model=model).task
    def ask() -> int: ...

    answered = None
    try:
        ask()
    except TaskClarify as question:
        answered = question.run.answer("the first").value
    assert answered == 1
    shown = model.requests[2].messages[-1].content
    assert "ZeroDivisionError" in shown
    assert "TaskClarify" not in shown
