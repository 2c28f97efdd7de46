"""The source of what an agent wrote, for host tools: `inspect`, tracebacks, `run.code`."""

from __future__ import annotations

import asyncio
import gc
import inspect
import linecache
import pickle
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agex import Agent, Disk, Versioned
from agex.agent.task import returned_functions
from agex.sandbox import Policy, Sandbox
from agex.sandbox.runtime import source_lines
from agex.sandbox.runtime.source_lines import source_file
from agex.testing import ScriptedModel

PROGRAM = """\
LIMIT = 100

def scale(x: int, *, by: int = 2) -> int:
    # as the model wrote it
    if x * by > LIMIT:
        raise ValueError("too large")
    return x * by

def adder(k):
    def add(x: int) -> int:
        return x // k  # a nested one
    return add

class Divider:
    def __init__(self, k):
        self.k = k

    def divide(self, x: int) -> int:
        return x // self.k

async def later(x: int) -> int:
    return x // 0
"""
SCALE = "".join(PROGRAM.splitlines(keepends=True)[2:7])


def run_of(ending: str, program: str = PROGRAM, **settings: Any) -> Any:
    agent = Agent(model=ScriptedModel([f"```python\n{program}\ntask_success({ending})\n```"]), **settings)

    @agent.task
    def make() -> Callable[..., Any]: ...

    return make.run()


def returned(ending: str, program: str = PROGRAM, **settings: Any) -> Any:
    return run_of(ending, program, **settings).value


def told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def kept_names() -> set[str]:
    gc.collect()
    return {name for name in linecache.cache if name.startswith("<")}


WRITTEN = {
    "scale": SCALE,
    "adder(2)": "    def add(x: int) -> int:\n        return x // k  # a nested one\n",
    "lambda x: x // 0": "task_success(lambda x: x // 0)\n",
    "Divider(0).divide": "    def divide(self, x: int) -> int:\n        return x // self.k\n",
    "later": "async def later(x: int) -> int:\n    return x // 0\n",
}


@pytest.mark.parametrize("ending", WRITTEN)
def test_inspect_shows_a_returned_function_as_it_was_written(ending: str) -> None:
    function = returned(ending)
    assert inspect.getsource(function).rstrip("\n") == WRITTEN[ending].rstrip("\n")


@pytest.mark.parametrize("ending", WRITTEN)
def test_inspect_shows_a_function_of_a_worker_as_it_was_written(ending: str) -> None:
    function = returned(ending, isolation="process")
    assert inspect.getsource(function).rstrip("\n") == textwrap.dedent(WRITTEN[ending]).rstrip("\n")


def test_inspect_shows_a_function_of_full_python_as_it_was_written() -> None:
    function = returned("scale", isolation="process", python="full")
    assert inspect.getsource(function) == SCALE
    assert str(inspect.signature(function)) == "(x: int, *, by: int = 2) -> int"


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_inspect_shows_functions_in_a_returned_container(isolation: Any) -> None:
    agent = Agent(
        model=ScriptedModel([f"```python\n{PROGRAM}\ntask_success({{'all': [scale, (1, scale)]}})\n```"]),
        isolation=isolation,
    )

    @agent.task
    def make() -> dict[str, list[Any]]: ...

    first, (_, second) = make()["all"]
    assert [inspect.getsource(each) for each in (first, second)] == [SCALE, SCALE]


def test_a_large_table_is_not_walked_for_functions() -> None:
    rows = [[number] * 100 for number in range(100_000)]
    seen = list(returned_functions._first_in(rows))
    assert len(seen) == 1000


def test_a_traceback_shows_the_lines_of_a_returned_function() -> None:
    with pytest.raises(ValueError, match="too large") as caught:
        returned("scale")(1000)
    assert '    raise ValueError("too large")' in told(caught.value)


def test_a_traceback_shows_the_lines_of_a_returned_coroutine_function() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        asyncio.run(returned("later")(1))
    assert "    return x // 0" in told(caught.value)


@pytest.mark.parametrize("python", ["guarded", "full"])
def test_a_traceback_tells_where_a_function_of_a_worker_failed(python: Any) -> None:
    function = returned("scale", isolation="process", python=python)
    for _ in range(2):
        with pytest.raises(ValueError, match="too large") as caught:
            function(1000)
        assert str(caught.value) == "too large"
        text = told(caught.value)
        assert "    def scale(x: int, *, by: int = 2) -> int:" in text
        assert text.count("raise ValueError('too large')") == 1


def test_functions_of_two_runs_keep_their_own_lines() -> None:
    first = returned("f", "def f(x):\n    return x + 1\n")
    second = returned("f", "def f(x):\n    return x + 2\n")
    assert (first(1), inspect.getsource(first)) == (2, "def f(x):\n    return x + 1\n")
    assert (second(1), inspect.getsource(second)) == (3, "def f(x):\n    return x + 2\n")


def test_programs_whose_digests_begin_alike_keep_their_own_lines() -> None:
    first = source_file("turn 1", "a = 1\n")
    first.source = "b = 2\n"  # as if both had one name
    second = source_file("turn 1", "a = 1\n")
    assert first.name != second.name
    assert linecache.getlines(second.name) == ["a = 1\n"]


def test_the_lines_go_with_the_function() -> None:
    before = kept_names()
    program = "def f(x):\n    def g(y):\n        return x + y\n    return g\n"
    function = returned("f", program)
    inner = function(1)
    (name,) = kept_names() - before
    del function
    assert name in kept_names()
    assert inspect.getsource(inner) == "    def g(y):\n        return x + y\n"
    del inner
    assert name not in kept_names()


def test_the_lines_of_a_worker_s_function_go_with_it() -> None:
    before = kept_names()
    function = returned("f", "def f(x):\n    return x\n", isolation="process")
    assert len(kept_names() - before) == 1
    del function
    assert kept_names() <= before


def test_a_pickled_function_shows_its_source() -> None:
    function = pickle.loads(pickle.dumps(returned("scale")))
    assert inspect.getsource(function).startswith("def scale(x: 'int', *, by: 'int'=2) -> 'int':")


def test_a_function_that_a_state_kept_shows_its_source_and_its_lines(tmp_path: Path) -> None:
    state = Versioned(Disk(tmp_path))
    returned("scale", state=state)
    state.close()
    again = Versioned(Disk(tmp_path))
    function = again["scale"]
    again.close()
    assert "raise ValueError('too large')" in inspect.getsource(function)
    assert inspect.signature(function).parameters["by"].default == 2
    with pytest.raises(ValueError, match="too large") as caught:
        function(1000)
    assert "    raise ValueError('too large')" in told(caught.value)


def test_code_of_the_same_session_sees_the_lines_of_a_function_that_was_handed_over() -> None:
    session = Sandbox(Policy.default()).session()
    session.run("def f(x):\n    return 1 / x\n", "<turn 1>")
    source_lines.show(session.look_up("f"))
    assert session.run("f(0)", "<turn 2>").traceback.splitlines()[-2] == "    return 1 / x"


def test_a_function_that_was_handed_over_is_stopped_like_any_other() -> None:
    function = returned("f", "def f(n):\n    return f(n + 1) if n % 500 else f(1)\n", timeout_seconds=5)
    with pytest.raises(RecursionError):
        function(1)
    assert inspect.getsource(function).startswith("def f(n):")


def test_a_run_has_the_code_that_made_its_value() -> None:
    replies = [
        "```python\nimport math\n```",
        "```python\n1 / 0\n```",
        "```python\ntask_success(math.pi)\n```",
    ]
    agent = Agent(model=ScriptedModel(replies))

    @agent.task
    def work() -> float: ...

    assert work.run().code == "import math\n\ntask_success(math.pi)"


def test_a_run_without_code_has_none() -> None:
    agent = Agent(model=ScriptedModel(["```python\n1 / 0\n```"]), max_iterations=1)

    @agent.task
    def work() -> float: ...

    with pytest.raises(Exception) as caught:  # noqa: PT011 - the run is looked at
        work()
    assert caught.value.run.code is None  # type: ignore[attr-defined]


def test_a_line_that_would_steer_a_terminal_is_spelled_out() -> None:
    function = returned("f", "def f():\n    return 'é\x1b[2J\u202e' + 1")

    with pytest.raises(TypeError) as caught:
        function()

    shown = "".join(traceback.format_exception(caught.value))
    assert "return 'é\\x1b[2J\\u202e' + 1" in shown
    assert "\x1b" not in shown
