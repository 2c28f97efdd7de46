"""What a task's annotations name can be said in the agent's code, and gives no more than that."""

from __future__ import annotations

import enum
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import pytest
from annotated_types import Gt

from agex.agent import Agent
from agex.errors import DefinitionError, TaskFail
from agex.testing import ScriptedModel, python_action


@dataclass
class Point:
    x: int
    y: int


class Color(enum.Enum):
    RED = "red"


class Connection:
    opened = 0

    def __init__(self):
        type(self).opened += 1

    def ask(self):
        return 7


def scripted(*codes, **settings):
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def test_typing_forms_can_be_repeated():
    agent, _ = scripted("def make(n: int) -> Callable[[int], int]:\n    return lambda x: x + n")

    @agent.task
    def make(n: int) -> Callable[[int], int]: ...

    assert make(2)(3) == 5


def test_constraints_can_be_repeated():
    agent, _ = scripted("def f(n: Annotated[int, Gt(gt=0)]) -> int:\n    return n")

    @agent.task
    def f(n: Annotated[int, Gt(0)]) -> int: ...

    assert f(2) == 2


def test_a_returned_record_can_be_made():
    agent, _ = scripted("def f(n: int) -> Point:\n    return Point(n, n)")

    @agent.task
    def f(n: int) -> Point: ...

    assert f(2) == Point(2, 2)


def test_an_enum_of_an_input_can_be_used():
    agent, _ = scripted("task_success(color is Color('red'))")

    @agent.task
    def f(color: Color) -> bool: ...

    assert f(Color.RED) is True


def test_a_class_of_a_registered_module_is_what_its_import_gives():
    import fractions

    agent, _ = scripted("from fractions import Fraction as F\ntask_success(F is Fraction)")

    @agent.task
    def f(x: fractions.Fraction) -> bool: ...

    assert f(fractions.Fraction(1)) is True


def test_a_live_class_can_be_named_but_not_made():
    agent, model = scripted(
        "assert isinstance(c, Connection)\nConnection()",
        "type(c)()",
        "task_success(c.ask())",
    )

    @agent.task
    def f(c: Connection) -> int: ...

    given, before = Connection(), Connection.opened
    assert f(given) == 7
    assert Connection.opened == before
    for request in model.requests[1:3]:
        assert "cannot be constructed here" in request.messages[-1].content


def test_a_dangerous_class_in_a_signature_starts_nothing():
    agent, model = scripted("Popen(['true'])", "task_fail('no')")

    @agent.task
    def f(p: subprocess.Popen[bytes] | None) -> int: ...

    with pytest.raises(TaskFail):
        f(None)
    assert "cannot be constructed here" in model.requests[1].messages[-1].content


def test_a_registration_keeps_its_own_terms():
    agent, model = scripted("Point(1, 2)", "task_success(p)")
    agent.cls(Point, constructable=False)

    @agent.task
    def f(p: Point) -> Point: ...

    assert f(Point(1, 2)) == Point(1, 2)
    assert "cannot be constructed here" in model.requests[1].messages[-1].content


def test_names_of_the_agent_itself_stay():
    agent, _ = scripted("task_success(inputs.x)")

    class cache:  # noqa: N801 - the point of the test
        pass

    @agent.task
    def f(x: int, c: cache | None) -> int: ...

    assert f(3, None) == 3


def test_examples_reach_a_function_by_the_names_of_the_task():
    agent, _ = scripted("def f(*, base, x):\n    return x * base")

    @agent.task(examples=[(((3,), {"base": 2}), 6), (((3,), {}), 30)])
    def f(x: int, base: int = 10) -> int:
        """Multiply.

        >>> f(2)
        20
        >>> f("two")
        Traceback (most recent call last):
        InputError: not for the agent's function
        """

    run = f.run(4)
    assert (run.value, run.turns) == (40, 1)


def test_an_example_is_compared_with_the_value_as_the_contract_builds_it():
    agent, _ = scripted("def f(n: int) -> Point:\n    return {'x': n, 'y': n}")

    @agent.task(examples=[(((1,), {}), Point(1, 1))])
    def f(n: int) -> Point: ...

    assert f.run(2).turns == 1


def test_an_example_that_does_not_fit_the_task_is_refused_when_declared():
    with pytest.raises(DefinitionError, match="does not fit the task"):

        @Agent().task(examples=[((("one",), {}), 1)])
        def f(n: int) -> int: ...


def test_an_example_whose_arguments_raise_is_refused_when_declared():
    with pytest.raises(DefinitionError, match="raise ZeroDivisionError"):

        @Agent().task
        def f(n: int) -> int:
            """Halve.

            >>> f(1 // 0)
            1
            """
