"""``agex serve-mcp MODULE:TASK``: tasks as tools for other programs, by the Model Context Protocol."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError

from agex import Disk, Versioned
from agex.cli.run import find_task
from agex.cli.serve_calls import ANSWER, KEEP_SECONDS, KeptCalls, TaskCall, answer_in
from agex.cli.serve_http import HttpAddress, serve_http
from agex.errors import AgexError, DefinitionError

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.types import CallToolRequestParams, CallToolResult, InputRequiredResult, Tool

    from agex.agent import Run
    from agex.cli.serve_calls import Request

__all__ = ["TaskTool", "serve_tasks"]


def serve_tasks(
    addresses: Sequence[str],
    model: str | None,
    *,
    state: Path | None = None,
    http: HttpAddress | None = None,
) -> None:
    """Serve the tasks at these addresses over standard input and output, until the input ends.

    With *state*, they share the versioned state in that directory, which is made where there is none. With
    *http*, they are served there, until the process is told to end.

    Raises:
        DefinitionError: no SDK is installed, there is no such task, or JSON cannot say what it takes or
            gives.
        ModelNotConfigured: there is no model to ask.
    """
    if importlib.util.find_spec("mcp") is None:
        raise DefinitionError('Serving tasks needs the MCP SDK: pip install "agex-py[mcp]"')
    kept = Versioned(Disk(state)) if state is not None else None
    try:
        tools = [TaskTool(_prepared(address, model, kept)) for address in addresses]
        names = [tool.name for tool in tools]
        if len(set(names)) < len(names):
            raise DefinitionError(f"Two tasks have one name: {', '.join(names)}. Tools have one each.")
        server = _server(tools)
        asyncio.run(_serve(server) if http is None else serve_http(server, http))
    finally:
        if kept is not None:
            kept.close()


def _prepared(address: str, model: str | None, state: Versioned | None) -> Any:
    task = find_task(address)
    if model is not None:
        task.agent.model = model
    task.agent.resolved_model()  # now, where somebody reads what is missing, and not at the first call
    return task if state is None else task.using(state=state)


class _Schema(GenerateJsonSchema):
    # A default that JSON cannot say is left out of the schema, and the task has it all the same.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"non-serializable-default"}  # noqa: RUF012 - as its base


class TaskTool:
    """A task as a tool: its schemas, and calls with JSON in and out.

    Raises:
        DefinitionError: JSON cannot say what it takes or gives.
    """

    def __init__(self, task: Any) -> None:
        signature = task.definition.terms.signature
        self.name: str = signature.name
        self._task = task
        with _needs_json(self.name, "what it takes"):
            self._arguments = _arguments_model(task)
            self._input_schema = self._arguments.model_json_schema(schema_generator=_Schema)
        with _needs_json(self.name, "what it gives"):
            annotation: Any = signature.checker("return").annotation
            self._result: TypeAdapter[Any] = TypeAdapter(annotation)
            schema = self._result.json_schema(mode="serialization", schema_generator=_Schema)
        self._is_object = schema.get("type") == "object"
        self._output_schema = schema if self._is_object else _wrapping(schema)

    def described(self) -> Tool:
        """Return the tool as a client is told of it."""
        from mcp.types import Tool

        return Tool(
            name=self.name,
            description=inspect.getdoc(self._task) or self._task.definition.primer or None,
            input_schema=self._input_schema,
            output_schema=self._output_schema,
        )

    async def call(
        self, request: Request, arguments: dict[str, Any], kept: KeptCalls
    ) -> CallToolResult | InputRequiredResult:
        """Run the task; a failure is described in the result, for the calling program.

        Args:
            request: of the client.
            arguments: as JSON.
            kept: where the call waits if its client has to answer a question.
        """

        async def begin() -> Run[Any] | InputRequiredResult:
            given = self._arguments.model_validate_json(json.dumps(arguments), strict=True)
            return await TaskCall(self._task, kept).begin(request, _given(given))

        return await self._answered(begin())

    async def go_on(
        self, request: Request, call: TaskCall, answer: str | None
    ) -> CallToolResult | InputRequiredResult:
        """Go on with a call whose client was asked something."""
        return await self._answered(call.go_on(request, answer))

    async def _answered(
        self, step: Awaitable[Run[Any] | InputRequiredResult]
    ) -> CallToolResult | InputRequiredResult:
        from mcp.types import CallToolResult, InputRequiredResult, TextContent

        try:
            run = await step
            if isinstance(run, InputRequiredResult):
                return run
            made = self._result.dump_python(run.value, mode="json")
        except (AgexError, ValidationError, PydanticSerializationError) as error:
            text = f"{type(error).__name__}: {error}"
            return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
        return CallToolResult(
            content=[TextContent(type="text", text=made if isinstance(made, str) else json.dumps(made))],
            structured_content=made if self._is_object else {"result": made},
        )


def _arguments_model(task: Any) -> type[BaseModel]:
    """Return a model of the task's parameters; its fields are numbered, for a parameter may have any name."""
    signature = task.definition.terms.signature
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(inspect.signature(task).parameters.values()):
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise DefinitionError(
                f"{signature.name!r} cannot be a tool: a tool's arguments have names, and {parameter} "
                "has none. Write the parameters out, or take a list or a dict."
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        described = Field(default=default, alias=parameter.name)
        fields[f"p{number}"] = (signature.checker(parameter.name).annotation, described)
    config = ConfigDict(extra="forbid", title=signature.name)
    return create_model(signature.name, __config__=config, **fields)


def _given(arguments: BaseModel) -> dict[str, Any]:
    """Return the arguments that were given, by the parameters' own names."""
    fields = type(arguments).model_fields
    return {str(fields[field].alias): getattr(arguments, field) for field in arguments.model_fields_set}


def _wrapping(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object whose ``result`` is what *schema* describes: a tool gives objects."""
    definitions = schema.pop("$defs", None)
    wrapping = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return wrapping if definitions is None else {**wrapping, "$defs": definitions}


@contextmanager
def _needs_json(name: str, what: str) -> Iterator[None]:
    try:
        yield
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise DefinitionError(f"{name!r} cannot be a tool: {what} has no form in JSON. {reason}") from error


def _server(tools: Sequence[TaskTool]) -> Server[Any]:
    from mcp import MCPError
    from mcp.server import Server
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
    from mcp.types import INVALID_PARAMS, ListToolsResult

    by_name = {tool.name: tool for tool in tools}

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[tool.described() for tool in tools])

    kept = KeptCalls()

    async def call_tool(
        request: Request, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if params.name not in by_name:
            known = ", ".join(by_name)
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}; there are: {known}")
        tool = by_name[params.name]
        if params.request_state is None:
            return await tool.call(request, params.arguments or {}, kept)
        waiting = kept.take(params.request_state)
        if waiting is None:
            raise MCPError(INVALID_PARAMS, f"no call of {params.name!r} waits for this answer any more")
        answer = (params.input_responses or {}).get(ANSWER)
        return await tool.go_on(request, waiting, answer_in(answer))

    from agex import __version__

    server: Server[Any] = Server(
        "agex", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool
    )
    # The SDK seals the names of calls that wait: to the tool, its arguments and the token.
    security = RequestStateSecurity.ephemeral(ttl=KEEP_SECONDS)
    server.middleware.append(RequestStateBoundary(security, default_audience="agex"))
    return server


async def _serve(server: Server[Any]) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):  # what anybody prints meanwhile goes to standard error
        await server.run(reading, writing, server.create_initialization_options())
