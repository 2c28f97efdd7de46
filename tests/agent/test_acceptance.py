"""What ends a task: examples that bind its value, and checks, whose own mistakes are the host's."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest
from pydantic import AfterValidator, BaseModel

import agex
from agex.agent import Agent
from agex.agent.call.events import ErrorEvent
from agex.errors import AgexError, CheckError, DefinitionError, TaskClarify, TaskError, TaskFail, TaskTimeout
from agex.testing import ScriptedModel, python_action

LEVELS = pytest.mark.parametrize("level", ["none", "process"])


def scripted(*codes: str, level: Any = "none", **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, isolation=level, **settings), model


def seen(model: ScriptedModel) -> str:
    return str(model.requests[-1].messages[-1].content)


# --- examples ---------------------------------------------------------------------------------------------


class Place(BaseModel):
    x: int


@dataclass
class Point:
    x: int


@LEVELS
def test_a_value_given_for_the_inputs_of_an_example_is_the_examples_own(level):
    agent, model = scripted("task_success('WRONG')", "task_success('AL')", level=level)

    @agent.task
    def initials(name: str) -> str:
        """Shorten a name.

        >>> initials("ada lovelace")
        'AL'
        """

    assert initials("ada lovelace") == "AL"
    assert "call:     initials('ada lovelace')" in seen(model)
    assert "expected: 'AL'" in seen(model)
    assert "got:      'WRONG'" in seen(model)


@LEVELS
def test_an_example_stated_in_words_binds_a_value_and_a_function(level):
    for codes in (
        ("task_success('AS')", "task_success('AL')"),
        ("def initials(name): return 'AS'", "def initials(name): return 'AL'"),
    ):
        agent, model = scripted(*codes, level=level)

        @agent.task
        def initials(name: str) -> str:
            """Shorten a name.

            For example, in 1843:
                initials("ada lovelace") returns "AL"
            """

        assert initials("ada lovelace") == "AL"
        assert "call:     initials('ada lovelace')" in seen(model)
        assert "got:      'AS'" in seen(model)


@LEVELS
def test_words_are_no_call_of_what_acts(level):
    charged: list[str] = []

    def charge(name: str) -> str:
        charged.append(name)
        return "no"

    agent, _ = scripted("def bill(name): return charge(name)", level=level)
    agent.fn(charge)

    @agent.task
    def bill(name: str) -> str:
        """Charge a customer.

        bill("ada") -> "ok"
        """

    assert bill("grace") == "no"
    assert charged == ["grace"]


@pytest.mark.parametrize(
    "register",
    [
        lambda agent: agent.module(json),
        lambda agent: agent.module(np, host_fs_access=True),
        lambda agent: agent.module(Point(1), name="point"),
        lambda agent: agent.cls(Point),
    ],
)
def test_words_are_not_tried_where_something_else_is_registered(register):
    agent, _ = scripted("def size(n): return n")
    register(agent)

    @agent.task
    def size(n: int) -> int:
        """size(1) == 2"""

    assert size(5) == 5


def test_words_bind_the_value_for_their_own_inputs_whatever_is_registered():
    agent, model = scripted("task_success('no')", "task_success('ok')")
    agent.fn(len)

    @agent.task
    def bill(name: str) -> str:
        """bill("ada") -> "ok" """

    assert bill("ada") == "ok"
    assert 'expected: "ok"' in seen(model)


def test_words_are_tried_where_only_libraries_are_registered():
    agent, model = scripted("def size(n): return n", "def size(n): return n + 1")
    agent.module(np)

    @agent.task
    def size(n: int) -> int:
        """size(1) == 2"""

    assert size(5) == 6
    assert "call:     size(1)" in seen(model)


@LEVELS
def test_words_may_name_a_file_that_is_not_there(level):
    agent, _ = scripted(
        "def rows(path): return 7 if path == 'mine.csv' else len(open(path).read())", level=level
    )

    @agent.task
    def rows(path: str) -> int:
        """rows("sales.csv") == 120"""

    assert rows("mine.csv") == 7


def test_words_whose_values_do_not_fit_the_task_are_no_example():
    agent, _ = scripted("task_success(7)")

    @agent.task
    def area(width: int, height: int) -> int:
        """Return the area.

        area(2) == 4
        area(2, "x") == 4
        area(2, 3) == "six"
        area(2, 3) -> None
        """

    assert area(2, 3) == 7


def test_words_are_no_example_where_the_result_is_built_of_them():
    agent, _ = scripted("task_success(Place(x=2))")
    agent.cls(Place)

    @agent.task
    def place(x: int) -> Place:
        """place(1) == {"x": 1}"""

    assert place(1) == Place(x=2)


def test_other_inputs_are_bound_by_no_example():
    agent, _ = scripted("task_success('GH')")

    @agent.task(examples=[((("ada lovelace",), {}), "AL")])
    def initials(name: str) -> str: ...

    assert initials("grace hopper") == "GH"


TABLE = pd.DataFrame({"a": [1, 2]})

MEANT: list[tuple[Any, ...]] = [
    ([(((2,), {}), 4)], (2,), {}, "3", "4"),
    ([(((), {"n": 2}), 4)], (2,), {}, "3", "4"),
    ([(((2,), {}), 4)], (), {"n": 2}, "3", "4"),
    ([(((2, 5), {}), 4)], (2,), {}, "3", "4"),
    ([((([1, 2],), {}), [2, 4])], ([1, 2],), {}, "[2, 5]", "[2, 4]"),
    ([((({"a": 1},), {}), True)], ({"a": 1},), {}, "1", "True"),
    ([(((np.array([1, 2]),), {}), 3)], (np.array([1, 2]),), {}, "4", "3"),
    ([(((TABLE,), {}), 3)], (TABLE.copy(),), {}, "4", "3"),
    ([(((Point(1),), {}), 3)], (Point(1),), {}, "4", "3"),
    ([(((float("nan"),), {}), 0)], (float("nan"),), {}, "1", "0"),
    ([(((2,), {}), None)], (2,), {}, "0", "None"),
    ([(((1,), {}), 5), (((2,), {}), 4)], (2,), {}, "5", "4"),
]


@pytest.mark.parametrize(("examples", "args", "kwargs", "wrong", "right"), MEANT)
def test_inputs_equal_those_of_an_example_however_they_are_passed(examples, args, kwargs, wrong, right):
    agent, model = scripted(f"task_success({wrong})", f"task_success({right})")

    @agent.task(examples=examples)
    def solve(n: Any, base: int = 5) -> Any: ...

    solve(*args, **kwargs)
    assert len(model.requests) == 2


def test_an_input_that_the_code_changes_still_names_its_example():
    agent, model = scripted("xs.clear()\ntask_success(0)", "task_success(3)")

    @agent.task(examples=[((([1, 2],), {}), 3)])
    def total(xs: list[int]) -> int: ...

    assert total([1, 2]) == 3
    assert len(model.requests) == 2


@LEVELS
def test_an_expression_around_the_call_is_what_binds(level):
    agent, model = scripted("task_success(2.5)", "task_success(2.04)", level=level)

    @agent.task
    def root(x: float) -> float:
        """Take the root.

        >>> round(root(4.2), 1)
        2.0
        """

    assert root(4.2) == 2.04
    assert "got:      2.5" in seen(model)


def test_a_call_that_is_to_fail_has_no_value():
    agent, model = scripted("task_success(0)", "task_fail('not defined at 0')")

    @agent.task
    def inverse(x: float) -> float:
        """Invert.

        >>> inverse(0.0)
        Traceback (most recent call last):
        ZeroDivisionError: not defined
        """

    with pytest.raises(TaskFail, match="not defined at 0"):
        inverse(0.0)
    assert "This call has no value; end the task with task_fail(message)." in seen(model)


def test_an_input_that_cannot_be_compared_equals_none_of_an_example():
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("not comparable")

        __hash__ = None  # type: ignore[assignment]

    agent, _ = scripted("task_success(1)")

    @agent.task(examples=[(((Odd(),), {}), 2)])
    def solve(x: Odd) -> int: ...

    assert solve(Odd()) == 1


def test_an_async_task_is_bound_too():
    agent, model = scripted("task_success(1)", "task_success(4)")

    @agent.task(examples=[(((2,), {}), 4)])
    async def double(n: int) -> int: ...

    assert asyncio.run(double(2)) == 4
    assert len(model.requests) == 2


# --- checks that fail themselves ---------------------------------------------------------------------------


def broken(error: BaseException) -> Callable[[Any, Any], Any]:
    def check(value: Any, inputs: Any) -> Any:
        raise error

    return check


HOSTS_OWN: list[Exception] = [
    KeyError("rates"),
    LookupError("x"),
    AttributeError("no"),
    ZeroDivisionError("y"),
    FileNotFoundError(2, "gone", "rates.csv"),
    ConnectionError("down"),
    RuntimeError("z"),
    ImportError("no module"),
    StopIteration(3),
    NotImplementedError(),
]


@pytest.mark.parametrize("error", HOSTS_OWN, ids=lambda error: type(error).__name__)
def test_an_exception_in_a_check_ends_the_run_at_once(error, caplog):
    agent, model = scripted("task_success(1)", "task_success(2)")

    @agent.task(checks=[broken(error)])
    def solve() -> int: ...

    with caplog.at_level(logging.WARNING, logger="agex"), pytest.raises(CheckError) as caught:
        solve()
    assert isinstance(caught.value, AgexError)
    assert caught.value.__cause__ is error
    assert "the check check raised " + type(error).__name__ in str(caught.value)
    assert len(model.requests) == 1
    run = caught.value.run
    assert run is not None
    assert not run.ok
    (event,) = [each for each in run.events if isinstance(each, ErrorEvent)]
    assert (event.error, event.recoverable, event.turn) == ("CheckError", False, 1)
    assert "in check\n    raise error" in event.traceback
    (record,) = caplog.records
    assert record.name == "agex"
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert agex.event_from_json(event.model_dump_json()).traceback == event.traceback


@LEVELS
@pytest.mark.parametrize(
    "code",
    [
        "task_success(1)",
        "def solve(n):\n    return 1",
        "try:\n    task_success(1)\nexcept Exception:\n    pass",
    ],
)
def test_no_way_to_end_a_task_hides_a_broken_check(level, code):
    agent, model = scripted(code, "task_success(2)", level=level)
    rates: dict[str, float] = {}

    def known(value: Any, inputs: Any) -> bool:
        return value in rates and rates["EUR"] > 0 if value else rates["USD"] > 0

    def first(value: Any, inputs: Any) -> bool:
        return rates["EUR"] > 0

    @agent.task(checks=[first, known])
    def solve(n: int) -> int: ...

    with pytest.raises(CheckError, match="the check first raised KeyError: 'EUR'") as caught:
        solve(1)
    assert isinstance(caught.value.__cause__, KeyError)
    assert len(model.requests) == 1


def test_a_check_that_would_end_the_program_ends_the_run():
    agent, model = scripted("task_success(1)")

    @agent.task(checks=[broken(SystemExit(3))])
    def solve() -> int: ...

    with pytest.raises(CheckError, match="the check check raised SystemExit: 3"):
        solve()
    assert len(model.requests) == 1


@pytest.mark.parametrize("check", [lambda value: True, lambda: True, lambda value, inputs, more: True])
def test_a_check_that_cannot_be_called_is_refused_where_it_is_declared(check):
    with pytest.raises(DefinitionError, match=r"is called as <lambda>\(value, inputs\)"):
        scripted()[0].task(checks=[check])(empty)


def empty(n: int) -> int: ...


def test_a_check_may_answer_with_a_bool_of_numpy():
    agent, model = scripted("task_success([1, 2])", "task_success([3, 4])")

    @agent.task(checks=[lambda value, inputs: (np.array(value) > 2).all()])
    def solve() -> list[int]: ...

    assert solve() == [3, 4]
    assert "does not pass <lambda>: not met" in seen(model)


@pytest.mark.parametrize("error", [AssertionError("no"), ValueError("no"), TypeError("no")])
def test_what_a_check_says_of_the_value_goes_to_the_code(error):
    agent, model = scripted("task_success(1)", "task_fail('given up')")

    @agent.task(checks=[broken(error)])
    def solve() -> int: ...

    with pytest.raises(TaskFail, match="given up"):
        solve()
    assert f"{type(error).__name__}: no" in seen(model)


@LEVELS
def test_an_error_of_the_agents_own_function_is_no_mistake_of_the_check_that_calls_it(level):
    agent, model = scripted(
        "def half(n):\n    return {}[n]\ntask_success(half)",
        "def half(n):\n    return n / 2\ntask_success(half)",
        level=level,
    )

    def halves(value: Any, inputs: Any) -> bool:
        return bool(value(4) == 2)

    @agent.task(checks=[halves])
    def write() -> Callable[[int], float]: ...

    assert write()(8) == 4
    assert "KeyError: 4" in seen(model)


def test_a_validator_that_fails_itself_is_the_hosts_too():
    agent, _ = scripted("task_success('USD')")

    def write(currency: str) -> Annotated[str, AfterValidator(rate)]: ...

    with pytest.raises(CheckError, match="the return annotation raised KeyError: 'USD'"):
        agent.task(write)("EUR")


def test_a_broken_check_of_a_called_task_ends_the_calling_one_too():
    inner, _ = scripted("task_success(1)")
    outer, model = scripted(
        "try:\n    ask()\nexcept Exception:\n    pass\ntask_success(2)", "task_success(3)"
    )

    @outer.fn
    @inner.task(checks=[broken(KeyError("rates"))])
    def ask() -> int: ...

    @outer.task
    def solve() -> int: ...

    with pytest.raises(CheckError) as caught:
        solve()
    assert isinstance(caught.value.__cause__, KeyError)
    assert len(model.requests) == 1


@LEVELS
def test_an_input_is_read_by_its_name_as_an_item_too(level):
    agent, _ = scripted(
        "try:\n    inputs['z']\nexcept KeyError as error:\n    print(error)\n"
        "task_success([inputs['x'], inputs.x, [*inputs], 'x' in inputs])",
        level=level,
    )

    def same(value: Any, inputs: Any) -> bool:
        return bool(inputs["x"] == inputs.x == value[0])

    @agent.task(checks=[same])
    def solve(x: int, y: str = "b") -> list[Any]: ...

    run = solve.run(5)
    assert run.value == [5, 5, ["x", "y"], True]


# --- errors of registered functions -------------------------------------------------------------------------


def rate(currency: str) -> float:
    """Return the rate of a currency."""
    rates: dict[str, float] = {"EUR": 1.0}
    return rates[currency]


@pytest.mark.parametrize("level", ["none", "process", "kernel"])
def test_an_error_of_a_registered_function_goes_to_the_code_and_to_the_host(level, caplog):
    agent, model = scripted("rate('USD')", "task_fail('no rate')", level=level)
    agent.fn(rate)

    @agent.task
    def solve() -> float: ...

    with caplog.at_level(logging.WARNING, logger="agex"), pytest.raises(TaskFail, match="no rate") as caught:
        solve()
    assert "KeyError: 'USD'" in str(model.requests[1].messages[-1].content)
    cause = caught.value.__cause__
    assert isinstance(cause, KeyError)
    (record,) = caplog.records
    assert record.getMessage() == "rate, which the agent's code called, raised KeyError: 'USD'"
    assert record.exc_info is not None
    assert record.exc_info[1] is cause
    assert "return rates[currency]" in (caplog.text)
    assert caught.value.run is not None
    (event,) = [each for each in caught.value.run.events if isinstance(each, ErrorEvent)]
    assert (event.message, event.error, event.recoverable) == (
        "rate raised KeyError: 'USD'",
        "KeyError",
        True,
    )
    assert "return rates[currency]" in event.traceback


@LEVELS
def test_an_error_that_the_code_caught_is_told_to_the_host_all_the_same(level, caplog):
    agent, _ = scripted("try:\n    rate('USD')\nexcept KeyError:\n    task_success(0.0)", level=level)
    agent.fn(rate)

    @agent.task
    def solve() -> float: ...

    with caplog.at_level(logging.WARNING, logger="agex"):
        run = solve.run()
    assert run.value == 0.0
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert [each.error for each in run.events if isinstance(each, ErrorEvent)] == ["KeyError"]


@pytest.mark.parametrize(
    ("ending", "kind"),
    [("task_fail('x')", TaskFail), ("task_clarify('x')", TaskClarify), ("pass", TaskTimeout)],
)
def test_the_last_error_is_the_cause_of_whatever_ends_the_run(ending, kind):
    agent, _ = scripted("rate('USD')", "rate('CHF')", ending, max_iterations=3)
    agent.fn(rate)

    @agent.task
    def solve() -> float: ...

    with pytest.raises(TaskError) as caught:
        solve()
    assert type(caught.value) is kind
    assert repr(caught.value.__cause__) == "KeyError('CHF')"


def test_an_error_of_an_async_function_is_told_too(caplog):
    agent, _ = scripted("fetch('x')", "task_fail('down')")

    @agent.fn
    async def fetch(url: str) -> str:
        await asyncio.sleep(0)
        raise ConnectionError("down")

    @agent.task
    async def solve() -> str: ...

    with caplog.at_level(logging.WARNING, logger="agex"), pytest.raises(TaskFail) as caught:
        asyncio.run(solve())
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert len(caplog.records) == 1


class Broken:
    def __call__(self, x: int) -> int:
        raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("rate()", False),
        ("rate(1, 2)", False),
        ("rate(wrong=1)", False),
        ("rate([])", True),
        ("opened('a')", True),
        ("apply(lambda: {}['x'])", False),
        ("apply(lambda: 1)", True),
        ("ask()", False),
        ("broken(3)", True),
        ("root(-1)", True),
        ("root('a')", False),
        ("rate('EUR')", False),
    ],
)
@LEVELS
def test_what_the_code_did_wrong_itself_is_not_told(code, told, level, caplog):
    agent, _ = scripted(
        f"try:\n    {code}\nexcept Exception as error:\n    pass\ntask_success(1)", level=level
    )
    inner, _ = scripted("task_fail('no')")
    agent.fn(rate)
    agent.fn(math.sqrt, name="root")
    agent.fn(Broken(), name="broken")

    @agent.fn
    def apply(f: Any) -> Any:
        f()
        raise OSError("full")

    @agent.fn
    def opened(path: str) -> str:
        with open(path) as file:  # noqa: PTH123 - it was not granted the files
            return file.read()

    @agent.fn
    @inner.task
    def ask() -> int: ...

    @agent.task
    def solve() -> int: ...

    with caplog.at_level(logging.WARNING, logger="agex"):
        run = solve.run()
    assert run.value == 1
    assert len(caplog.records) == told


def test_code_that_calls_a_failing_function_for_ever_does_not_flood_the_log(caplog):
    again = "for _ in range(5000):\n    try:\n        rate('USD')\n    except KeyError:\n        pass\n"
    agent, _ = scripted(f"{again}task_success(1)")
    agent.fn(rate)

    @agent.task
    def solve() -> int: ...

    with caplog.at_level(logging.WARNING, logger="agex"):
        solve()
    assert len(caplog.records) == 20


def test_a_handler_of_the_log_works_with_the_powers_of_the_host(tmp_path):
    handler = logging.FileHandler(tmp_path / "log.txt", delay=True)
    logger = logging.getLogger("agex")
    logger.addHandler(handler)
    try:
        agent, model = scripted("rate('USD')", "task_success(1)")
        agent.fn(rate)

        @agent.task
        def solve() -> int: ...

        solve()
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert "KeyError: 'USD'" in (tmp_path / "log.txt").read_text()
    assert "which the agent's code called" not in seen(model)


def test_help_still_has_the_hosts_own_words_for_a_function():
    agent, model = scripted("help(rate)", "task_success(1)")
    agent.fn(rate, docstring="Ask for a rate.")

    @agent.task
    def solve() -> int: ...

    solve()
    assert "Ask for a rate." in seen(model)
    assert "rate(currency: str) -> float" in seen(model)
