"""A task handed to other libraries: to them it is the function that it was made of."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import typing
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from agex import Agent, DefinitionError, Live
from agex.testing import ScriptedModel

DOUBLES = "```python\ntask_success(Total(amount=number * 2, note=note))\n```"


@dataclass
class Total:
    """An amount with a note."""

    amount: int
    note: str


agent = Agent(ScriptedModel([DOUBLES] * 50))


@agent.task
def double(number: int, note: str = "plain") -> Total:
    """Double a number.

    Args:
        number: what is doubled.
        note: kept with it.
    """


@agent.task
async def later(number: int, note: str = "plain") -> Total:
    """Double a number, later."""


# -- the standard library


@pytest.mark.parametrize("task", [double, later], ids=["sync", "async"])
def test_its_hints_stay_when_those_of_its_class_are_read(task: Any) -> None:
    with pytest.raises(AttributeError, match="__annotations__"):
        type(task).__annotations__  # noqa: B018 - the look-up itself left an empty dict
    assert task.__annotations__["number"] is int


@pytest.mark.parametrize("task", [double, later], ids=["sync", "async"])
def test_its_hints_are_types(task: Any) -> None:
    expected = {"number": int, "note": str, "return": Total}
    assert typing.get_type_hints(task) == expected
    assert task.__annotations__ == expected


def test_its_signature_has_types_and_defaults() -> None:
    signature = inspect.signature(double)
    assert signature.return_annotation is Total
    assert [(one.name, one.annotation, one.default) for one in signature.parameters.values()] == [
        ("number", int, inspect.Parameter.empty),
        ("note", str, "plain"),
    ]


def test_it_is_a_coroutine_function_where_it_was_declared_as_one() -> None:
    assert inspect.iscoroutinefunction(later)
    assert inspect.iscoroutinefunction(later.using(state=Live()))
    assert not inspect.iscoroutinefunction(double)


def test_it_has_the_name_module_and_docstring_of_its_function() -> None:
    assert (double.__name__, double.__qualname__, double.__module__) == ("double", "double", __name__)
    assert (double.__doc__ or "").startswith("Double a number.")


def test_a_name_that_is_defined_later_is_resolved_when_it_is_asked_for() -> None:
    namespace: dict[str, Any] = {"agent": agent}
    code = "from __future__ import annotations\n@agent.task\ndef make() -> Late: ..."
    exec(compile(code, __file__, "exec", dont_inherit=True), namespace)
    assert namespace["make"].__annotations__ == {"return": "Late"}
    namespace["Late"] = Total
    assert typing.get_type_hints(namespace["make"]) == {"return": Total}


def test_a_class_of_tasks_can_still_be_inspected() -> None:
    assert "definition" in str(inspect.signature(type(double)))
    assert inspect.getdoc(type(double)) == "A function whose body the agent writes."


def test_a_copy_and_a_pickle_of_it_are_tasks() -> None:
    for made in (copy.copy(double), pickle.loads(pickle.dumps(double)), double.using(budget=None)):
        assert type(made) is type(double)
        assert made(2) == Total(4, "plain")


@pytest.mark.parametrize("task", [double, later], ids=["sync", "async"])
def test_a_plain_function_of_it_has_its_declaration(task: Any) -> None:
    function = task.as_function()
    assert inspect.isfunction(function)
    assert inspect.iscoroutinefunction(function) == inspect.iscoroutinefunction(task)
    assert (function.__name__, function.__doc__) == (task.__name__, task.__doc__)
    assert typing.get_type_hints(function) == typing.get_type_hints(task)
    assert inspect.signature(function) == inspect.signature(task)


def test_a_plain_function_of_it_calls_it() -> None:
    assert double.as_function()(4, note="n") == Total(8, "n")
    assert asyncio.run(later.as_function()(5)) == Total(10, "plain")


# -- other libraries


def test_pydantic_ai_calls_it_as_a_tool() -> None:
    def respond(messages: list[Any], info: Any) -> ModelResponse:
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returned:
            return ModelResponse(parts=[TextPart(repr([part.content for part in returned]))])
        schemas = {tool.name: tool.parameters_json_schema["properties"] for tool in info.function_tools}
        assert schemas["double"]["number"] == {"type": "integer", "description": "what is doubled."}
        return ModelResponse(
            parts=[ToolCallPart("double", {"number": 4}), ToolCallPart("later", {"number": 5})]
        )

    caller: Any = PydanticAgent(FunctionModel(respond), tools=[double, later])

    async def ask() -> Any:
        return (await caller.run("Double 4 and 5.")).output

    assert asyncio.run(ask()) == "[Total(amount=8, note='plain'), Total(amount=10, note='plain')]"


def test_pydantic_validates_its_arguments() -> None:
    call = pydantic.validate_call(double)
    assert call("21") == Total(42, "plain")
    with pytest.raises(pydantic.ValidationError, match="should be a valid integer"):
        call("many")
    assert asyncio.run(pydantic.validate_call(later)("3")) == Total(6, "plain")


def test_an_mcp_server_has_it_as_a_tool() -> None:
    fastmcp = pytest.importorskip("mcp.server.mcpserver", reason="needs the MCP SDK")
    server = fastmcp.MCPServer("tasks")
    server.add_tool(double)
    server.add_tool(later)

    async def use() -> tuple[list[str], Any, Any]:
        names = [tool.name for tool in await server.list_tools()]
        return (
            names,
            await server.call_tool("double", {"number": 4}),
            await server.call_tool("later", {"number": 5}),
        )

    names, first, second = asyncio.run(use())
    assert names == ["double", "later"]
    assert ("8" in str(first), "10" in str(second)) == (True, True)


def test_fastapi_serves_it_as_a_route() -> None:
    fastapi = pytest.importorskip("fastapi", reason="needs FastAPI")
    served: Any = fastapi.FastAPI()
    served.post("/double")(double)
    served.post("/later")(later)
    schema = served.openapi()["paths"]["/double"]["post"]
    assert [one["name"] for one in schema["parameters"]] == ["number", "note"]
    assert "Total" in str(schema["responses"]["200"])
    assert asyncio.run(_posted(served, "/double", b"number=4")) == (200, b'{"amount":8,"note":"plain"}')
    assert asyncio.run(_posted(served, "/later", b"number=5")) == (200, b'{"amount":10,"note":"plain"}')
    assert asyncio.run(_posted(served, "/double", b"number=many"))[0] == 422


async def _posted(served: Any, path: str, query: bytes) -> tuple[int, bytes]:
    """Ask an ASGI application, without a client of another library."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": query, "root_path": "", "headers": [],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await served(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


def test_langchain_makes_a_tool_of_it() -> None:
    tools = pytest.importorskip("langchain_core.tools", reason="needs LangChain: pip install langchain-core")
    tool = tools.StructuredTool.from_function(double)
    assert (tool.name, sorted(tool.args)) == ("double", ["note", "number"])
    assert tool.invoke({"number": 4}) == Total(8, "plain")
    awaited = tools.StructuredTool.from_function(coroutine=later)
    assert asyncio.run(awaited.ainvoke({"number": 5})) == Total(10, "plain")


def test_dspy_makes_a_tool_of_it() -> None:
    dspy = pytest.importorskip("dspy", reason="needs DSPy, 150 MB: pip install dspy")
    tool = dspy.Tool(double.as_function())
    assert (tool.name, sorted(tool.args)) == ("double", ["note", "number"])
    assert tool(number=4) == Total(8, "plain")


def test_the_openai_agents_sdk_makes_a_tool_of_it() -> None:
    agents = pytest.importorskip("agents", reason="needs the OpenAI Agents SDK: pip install openai-agents")
    tool = agents.function_tool(double.as_function())
    assert tool.name == "double"
    assert sorted(tool.params_json_schema["properties"]) == ["note", "number"]
    assert tool.params_json_schema["properties"]["number"]["description"] == "what is doubled."


def test_a_task_of_a_task_is_still_refused() -> None:
    with pytest.raises(DefinitionError, match="is a task already"):
        agent.task(double)
