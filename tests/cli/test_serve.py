"""``agex serve-mcp`` as a process of its own, asked by the SDK's client."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters

from agex.agent import Agent
from agex.cli.serve import serve_tasks
from agex.errors import DefinitionError
from agex.mcp import ToolServer
from agex.state import Disk, Versioned
from agex.testing import ScriptedModel, python_action

TASKS = '''
import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, Callable, Literal

import pandas as pd
from annotated_types import Gt
from pydantic import BaseModel

from agex import Agent
from agex.testing import ScriptedModel


@dataclass
class Order:
    item: str
    count: int = 1


class Bill(BaseModel):
    due: dt.date
    lines: list[Order]


def always(code):
    return Agent(model=ScriptedModel(lambda messages: f"```python\\n{code}\\n```"))


@always("print('noise')\\ntask_success(Bill(due=day, lines=orders))").task
def bill(orders: list[Order], day: dt.date, kind: Literal["a", "b"] = "a") -> Bill:
    """Write a bill."""


@always("task_success(n * 2)").task
async def double(n: Annotated[int, Gt(0)]) -> int:
    """Double it."""


@always("task_fail('no such thing')").task
def fail() -> int: ...


@always("task_clarify('which one?')").task
def ask() -> int: ...


@always("task_success(noisy())").task
def noise() -> None: ...


@noise.agent.fn
def noisy() -> None:
    print("this is no protocol", flush=True)


@always("while True: pass").task
def hang() -> int: ...


counting = always("count = count + 1 if 'count' in dir() else 1\\ntask_success(count)")


@counting.task
def count() -> int: ...


@always("task_success(0)").task
def takes_a_frame(frame: pd.DataFrame) -> int: ...


@always("task_success(0)").task
def gives_a_function() -> Callable[[], int]: ...


@always("task_success(0)").task
def takes_any_number(*numbers: int) -> int: ...


@always("task_success(_x)").task
def odd_names(_x: int, model_config: int = 1, schema: object = object()) -> int: ...


@Agent().task
def modelless() -> int: ...
'''


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "tasks.py").write_text(TASKS)
    return [sys.executable, "-c", "from agex.cli import main; main()", "serve-mcp"]


@asynccontextmanager
async def served(command: list[str], tmp_path: Path, *arguments: str) -> AsyncIterator[Client]:
    program, *rest = [*command, *arguments]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    parameters = StdioServerParameters(command=program, args=rest, cwd=tmp_path, env={"PYTHONPATH": path})
    async with Client(parameters, read_timeout_seconds=60) as client:
        yield client


async def test_a_task_is_a_tool_with_its_schemas(command: list[str], tmp_path: Path) -> None:
    async with served(command, tmp_path, "tasks:bill", "tasks:double") as client:
        bill, double = (await client.list_tools()).tools
    assert (bill.name, bill.description) == ("bill", "Write a bill.")
    assert bill.input_schema["required"] == ["orders", "day"]
    assert bill.input_schema["properties"]["orders"]["items"] == {"$ref": "#/$defs/Order"}
    assert bill.input_schema["properties"]["kind"]["enum"] == ["a", "b"]
    assert bill.input_schema["properties"]["kind"]["default"] == "a"
    assert bill.input_schema["additionalProperties"] is False
    assert bill.output_schema is not None
    assert list(bill.output_schema["properties"]) == ["due", "lines"]
    assert double.input_schema["properties"]["n"] == {"exclusiveMinimum": 0, "title": "N", "type": "integer"}
    assert double.output_schema is not None
    assert double.output_schema["properties"] == {"result": {"type": "integer"}}


async def test_tasks_are_called_with_json_and_answer_with_json(command: list[str], tmp_path: Path) -> None:
    async with served(command, tmp_path, "tasks:bill", "tasks:double", "tasks:odd_names") as client:
        bill = await client.call_tool("bill", {"orders": [{"item": "tea"}], "day": "2024-02-29"})
        double = await client.call_tool("double", {"n": 4})
        odd = await client.call_tool("odd_names", {"_x": 3, "schema": 1})
    assert bill.structured_content == {"due": "2024-02-29", "lines": [{"item": "tea", "count": 1}]}
    assert [double.structured_content, double.content[0].text] == [{"result": 8}, "8"]  # type: ignore[union-attr]
    assert odd.structured_content == {"result": 3}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("double", {"n": "4"}, "valid integer"),
    ("double", {"n": 0}, "greater than 0"),
    ("double", {}, "Field required"),
    ("double", {"n": 1, "state": "x"}, "Extra inputs"),
    ("double", {"p0": 1}, "Field required"),
    ("bill", {"orders": [{"item": 1}], "day": "2024-02-29"}, "valid string"),
    ("fail", {}, "TaskFail: no such thing"),
    ("ask", {}, "TaskClarify: which one?"),
]


async def test_what_goes_wrong_is_told_in_the_answer(command: list[str], tmp_path: Path) -> None:
    async with served(command, tmp_path, "tasks:double", "tasks:bill", "tasks:fail", "tasks:ask") as client:
        for name, arguments, said in REFUSED:
            answer = await client.call_tool(name, arguments)
            assert answer.is_error
            assert said in answer.content[0].text  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="there is no tool 'other'; there are: double, bill, fail, ask"):
            await client.call_tool("other", {})


async def test_what_is_printed_does_not_get_into_the_protocol(command: list[str], tmp_path: Path) -> None:
    async with served(command, tmp_path, "tasks:noise") as client:
        assert (await client.call_tool("noise", {})).structured_content == {"result": None}


async def test_calls_run_side_by_side_and_a_dropped_one_holds_up_nobody(
    command: list[str], tmp_path: Path
) -> None:
    async with served(command, tmp_path, "tasks:hang", "tasks:double") as client:
        with anyio.move_on_after(0.5):
            await client.call_tool("hang", {})
        answers: list[Any] = []

        async def ask(n: int) -> None:
            answers.append((await client.call_tool("double", {"n": n})).structured_content)

        async with anyio.create_task_group() as group:
            for n in range(1, 9):
                group.start_soon(ask, n)
    assert sorted(answer["result"] for answer in answers) == [2 * n for n in range(1, 9)]


async def test_tasks_keep_their_variables_in_a_directory(command: list[str], tmp_path: Path) -> None:
    for expected in (1, 2):
        async with served(command, tmp_path, "tasks:count", "--state", "kept") as client:
            assert (await client.call_tool("count", {})).structured_content == {"result": expected}
    state = Versioned(Disk(tmp_path / "kept"))
    try:
        assert state["count"] == 2
    finally:
        state.close()


MISUSED = [
    (["tasks:takes_a_frame"], "what it takes has no form in JSON"),
    (["tasks:gives_a_function"], "what it gives has no form in JSON"),
    (["tasks:takes_any_number"], "a tool's arguments have names"),
    (["tasks:nothing"], "is not a task"),
    (["tasks"], "names no task"),
    (["tasks:double", "tasks:double"], "Two tasks have one name"),
    (["tasks:modelless", "--model", "nobody"], "ModelNotConfigured"),
]


@pytest.mark.parametrize(("arguments", "said"), MISUSED, ids=[" ".join(one) for one, _ in MISUSED])
def test_what_cannot_be_served_is_said_before_anything_is(
    command: list[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    ended = subprocess.run([*command, *arguments], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr


def test_without_the_sdk_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(DefinitionError, match="pip install"):
        serve_tasks(["tasks:double"], None)


def test_a_task_of_another_process_is_a_function_of_an_agent(command: list[str], tmp_path: Path) -> None:
    program, *rest = [*command, "tasks:bill"]
    path = os.pathsep.join([str(tmp_path), *sys.path])
    parameters = StdioServerParameters(command=program, args=rest, cwd=tmp_path, env={"PYTHONPATH": path})
    code = "import shop\ntask_success(shop.bill([{'item': 'tea'}], day='2024-02-29')['lines'][0]['item'])"
    with ToolServer(parameters) as server:
        agent = Agent(model=ScriptedModel([[python_action(code)]]))
        agent.mcp(server, name="shop")

        @agent.task
        def order() -> str: ...

        assert order() == "tea"
