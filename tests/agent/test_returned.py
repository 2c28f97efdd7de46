"""Functions that agents return: ordinary to the host, pickled by their source."""

from __future__ import annotations

import inspect
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agex import Agent, Live, SandboxError
from agex.sandbox import Limits, Policy, Sandbox
from agex.testing import ScriptedModel

MAKE = """\
import math
k = 3

def make(s):
    def scaled(x: float) -> float:
        "Scale it."
        return math.sqrt(x) * k + s
    return scaled

task_success(make(1))
"""


def half(x: float) -> float:
    return x / 2


def returned(code: str, *, register: Callable[[Agent], object] = lambda _: None, **settings: Any) -> Any:
    agent = Agent(model=ScriptedModel([f"```python\n{code}\n```"]), **settings)
    register(agent)

    @agent.task
    def make() -> Callable[..., Any]: ...

    return make()


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_a_returned_function_is_like_any_other() -> None:
    function = returned(MAKE)
    assert (function(4), function.__name__, function.__doc__) == (7.0, "scaled", "Scale it.")
    assert str(inspect.signature(function)) == "(x: float) -> float"


def test_it_survives_pickling_with_what_it_captured() -> None:
    function = again(again(returned(MAKE)))
    assert (function(4), function.__name__) == (7.0, "scaled")


def test_it_is_made_again_in_another_process() -> None:
    data = pickle.dumps(returned(MAKE, register=lambda agent: agent.module(math)))
    program = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())(4))"
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True)
    assert done.stdout.strip() == b"7.0"


def test_what_its_agent_may_use_comes_with_it() -> None:
    code = "def f(x):\n    return half(x)\ntask_success(f)"
    function = returned(code, register=lambda agent: agent.fn(half))
    assert again(function)(5) == 2.5


def test_the_guards_come_with_it() -> None:
    function = again(returned("def f(x):\n    import os\n    return os.getcwd()\ntask_success(f)"))
    with pytest.raises(SandboxError):
        function(1)


def test_what_it_cannot_take_along_is_named() -> None:
    code = "def f(x):\n    return len(rows) + x\ntask_success(f)"
    agent = Agent(model=ScriptedModel([f"```python\n{code}\n```"]))

    @agent.task
    def make(rows: Any) -> Callable[..., Any]: ...

    function = make(__import__("threading").Lock())
    with pytest.raises(pickle.PicklingError, match="rows"):
        pickle.dumps(function)


def test_it_is_not_limited_by_the_clock_of_the_turn_that_made_it() -> None:
    body = "    total = 0\n    for i in range(n):\n        total += i\n    return total\n"
    code = f"def f(n):\n{body}task_success(f)"
    function = returned(code, timeout_seconds=0.05)
    assert function(3_000_000) == 4_499_998_500_000


def test_an_agent_that_calls_the_task_gets_the_function_itself() -> None:
    inner = Agent(model=ScriptedModel(["```python\ndef f(x):\n    return x + 1\ntask_success(f)\n```"]))
    outer = Agent(model=ScriptedModel(["```python\nf = make()\ntask_success([f(1), type(f).__name__])\n```"]))

    @outer.fn
    @inner.task
    def make() -> Callable[..., Any]: ...

    @outer.task
    def work() -> list[Any]: ...

    assert work() == [2, "function"]


def test_a_state_keeps_the_function_under_its_name() -> None:
    state = Live()
    function = returned("def f(x):\n    return x + 1\ntask_success(f)", state=state)
    assert state["f"](1) == function(1) == 2


def test_a_function_that_a_later_run_stopped_works_again() -> None:
    function = returned("def f(n):\n    while n:\n        n -= 1\n    return 'done'\ntask_success(f)")
    result = Sandbox(Policy(), limits=Limits(seconds=0.2)).session().call(function, -1)
    assert "longer than 0.2 s" in str(result.error)
    assert function(3) == "done"
