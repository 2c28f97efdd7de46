from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agex.errors import DefinitionError, ToolDefinitionError
from agex.testing import ScriptedModel
from agex.tinyagent import ExecutionLimits, PythonExecutor, TinyCodeAgent, Tool, tool


@tool
def calculate(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


def test_a_tool_is_still_a_function_of_the_host():
    assert isinstance(calculate, Tool)
    assert (calculate(5, 3), calculate.name, calculate.doc) == (8, "calculate", "Add two numbers.")
    assert str(calculate.signature) == "(x: 'int', y: 'int') -> 'int'"


def test_the_code_calls_a_tool_by_its_name():
    assert PythonExecutor(tools=[calculate]).run("final_answer(calculate(5, y=3))").final_value == 8


def test_a_tool_can_have_another_name():
    @tool(name="plus")
    def f(x: int) -> int:
        """Add one."""
        return x + 1

    assert PythonExecutor(tools=[f]).run("final_answer(plus(1))").final_value == 2


@pytest.mark.parametrize(
    "call", ["calculate(1, '2')", "calculate(1)", "calculate(1, 2, 3)", "calculate(1, z=2)"]
)
def test_arguments_that_do_not_fit_are_a_type_error_in_the_code(call):
    executor = PythonExecutor(tools=[calculate])
    result = executor.run(f"try:\n    {call}\nexcept TypeError as error:\n    final_answer(str(error))")
    assert result.final_value.startswith("calculate():")


def test_a_dict_becomes_the_model_that_a_tool_takes():
    from dataclasses import dataclass

    @dataclass
    class Point:
        x: int
        y: int

    @tool
    def total(point: Point) -> int:
        """Add the coordinates."""
        assert type(point) is Point
        return point.x + point.y

    assert PythonExecutor(tools=[total]).run("final_answer(total({'x': 1, 'y': 2}))").final_value == 3


def test_what_a_tool_prints_is_output_of_the_step():
    @tool
    def loud() -> None:
        """Print."""
        print("from the tool")

    assert PythonExecutor(tools=[loud]).run("loud()").output == "from the tool"


def test_an_error_of_a_tool_can_be_caught_by_the_code():
    @tool
    def broken() -> None:
        """Fail."""
        raise LookupError("no such thing")

    result = PythonExecutor(tools=[broken]).run(
        "try:\n    broken()\nexcept LookupError as e:\n    final_answer(str(e))"
    )
    assert result.final_value == "no such thing"


def test_a_tool_does_what_the_host_may(tmp_path):
    @tool
    def work(text: str) -> str:
        """Write a file and run a process."""
        (tmp_path / "made.txt").write_text(text, encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-c", "print('ran')"], capture_output=True, text=True, check=True
        ).stdout.strip()

    executor = PythonExecutor(tools=[work])
    assert executor.run("final_answer(work('hello'))").final_value == "ran"
    assert (tmp_path / "made.txt").read_text(encoding="utf-8") == "hello"
    assert not executor.run("open('made.txt', 'w')").success


def test_code_that_a_tool_calls_back_is_no_freer():
    @tool
    def apply(f: Callable[..., Any], *args: Any) -> Any:
        """Call it."""
        return f(*args)

    executor = PythonExecutor(tools=[apply])
    for code in (
        "def f():\n    import os\nleak = apply(f)",
        "leak = apply(getattr, apply, '__globals__')",
        "leak = apply('{0.__globals__}'.format, apply)",
        "leak = apply(open, '/etc/hostname')",
        "leak = apply(vars, memory)",
    ):
        result = executor.run(code)
        assert (result.success, "leak" in result.namespace) == (False, False)


def test_a_tool_counts_in_the_time_of_its_step():
    @tool
    def endless() -> None:
        """Never end."""
        while True:
            pass

    result = PythonExecutor(tools=[endless], limits=ExecutionLimits(timeout_seconds=0.2)).run("endless()")
    assert result.timeout


def test_a_failing_step_shows_how_the_tools_it_called_are_used():
    @tool
    def other(calculate: int) -> int:
        """Never mind."""
        return calculate

    model = ScriptedModel(["```python\nother\ncalculate(1, 'a')\n```", "```python\nfinal_answer(1)\n```"])
    TinyCodeAgent(model=model, tools=[calculate, other]).run_sync("a")
    seen = model.requests[1].messages[-1].content
    assert "How to use calculate(x: int, y: int) -> int:\nAdd two numbers." in seen
    assert "Never mind" not in seen


def test_help_tells_how_to_use_a_tool():
    output = PythonExecutor(tools=[calculate]).run("help(calculate)").output
    assert output == "calculate(x: int, y: int) -> int\n\nAdd two numbers."


def test_a_task_of_an_agent_can_be_called_by_a_tool_and_its_error_brings_no_state_along():
    from agex import Agent
    from agex.state import Live

    inner = Agent(model=ScriptedModel(["```python\ntask_fail('cannot')\n```"]), state=Live())
    inner.state["secret"] = "s3cret"  # type: ignore[index]

    @inner.task
    def ask(text: str) -> str: ...  # type: ignore[empty-body]

    @tool
    def delegate(text: str) -> str:
        """Ask another agent."""
        return ask(text)

    code = "try:\n    delegate('x')\nexcept Exception as e:\n    final_answer((str(e), e.run))"
    assert PythonExecutor(tools=[delegate]).run(code).final_value == ("cannot", None)


# -- definitions


def test_a_parameter_needs_a_type():
    def f(a, b: int) -> int:
        """Add."""

    with pytest.raises(ToolDefinitionError, match="Missing type hint for parameter 'a' in f"):
        tool(f)


def test_a_result_needs_a_type():
    def f(a: int):
        """Add."""

    with pytest.raises(ToolDefinitionError, match="Missing return type annotation for f"):
        tool(f)


def test_a_missing_docstring_is_warned_of():
    def f(a: int) -> int:
        return a

    with pytest.warns(UserWarning, match="Tool 'f' has no docstring"):
        tool(f)


@pytest.mark.parametrize("thing", [len, int, "calculate", None, 3])
def test_only_plain_functions_are_tools(thing):
    with pytest.raises(ToolDefinitionError, match="takes a plain function"):
        tool(name="f")(thing)


@pytest.mark.parametrize("name", ["not a name", "class", "__import__", "1x"])
def test_a_tool_needs_a_name_that_code_can_say(name):
    with pytest.raises(ToolDefinitionError, match="cannot be a tool's name"):
        tool(name=name)(calculate.fn)


@pytest.mark.parametrize("name", ["final_answer", "store", "commit", "open", "print", "help"])
def test_a_tool_cannot_take_the_name_of_a_helper(name):
    with pytest.raises(ToolDefinitionError, match=r"has a .* of its own"):
        tool(name=name)(calculate.fn)


def test_a_type_that_cannot_be_checked_is_refused():
    def f(a: 3) -> int:  # type: ignore[valid-type]
        """Add."""

    with pytest.raises(ToolDefinitionError, match=r"Tool 'f' cannot be used: .*parameter 'a'"):
        tool(f)


def test_a_type_that_does_not_exist_is_said_at_the_call():
    def f(a: NoSuchType) -> int:  # type: ignore[name-defined]  # noqa: F821
        """Add."""

    assert "NoSuchType" in PythonExecutor(tools=[tool(f)]).run("f(1)").error


def test_async_tools_are_refused_as_documented():
    @tool
    async def fetch(url: str) -> str:
        """Fetch it."""
        return url

    with pytest.raises(ToolDefinitionError, match="TinyCodeAgent does not support async tools: 'fetch'"):
        TinyCodeAgent(tools=[fetch])


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ToolDefinitionError, match="Duplicate tool name 'calculate' detected"):
        TinyCodeAgent(tools=[calculate, tool(calculate.fn)])


def test_a_function_that_is_no_tool_is_refused():
    with pytest.raises(ToolDefinitionError, match="Use the @tool decorator"):
        TinyCodeAgent(tools=[len])  # type: ignore[list-item]


def test_the_errors_of_tools_are_definition_errors_and_value_errors():
    assert issubclass(ToolDefinitionError, DefinitionError)
    assert issubclass(ToolDefinitionError, ValueError)
