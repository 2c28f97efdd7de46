"""A connection to one server, from any thread.

The connection lives on the package's private event loop. Calls come from the agent's code; they
are carried out in a context of their own, so that what is refused to that code is not refused
to the connection.
"""

from __future__ import annotations

import atexit
import importlib.util
import itertools
import sys
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import Context
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import finalize

from agex.errors import DefinitionError, ToolError
from agex.mcp.conformity import require_conforming
from agex.mcp.json_values import from_result, message_of
from agex.mcp.names import identifier, one_line
from agex.mcp.tools import DOC_CHARS, is_wrapped, make_module
from agex.models import background

if TYPE_CHECKING:
    import asyncio

    from mcp import Client, StdioServerParameters
    from mcp.types import CallToolResult, Tool

__all__ = ["ToolServer"]

T = TypeVar("T")

TOOLS = 500
"""Of one server; one that lists more is broken, or means harm."""
LEAVE = 6.0
"""Seconds a server gets to end: the SDK gives it 2 to leave by itself, and 2 more before it is killed."""
POLL = 0.05
"""Seconds between two looks at whether the caller was stopped while it waits for an answer."""


class ToolServer:
    """A server and its tools. Reached at the first use; ends with :meth:`close`, or with its last user.

    Args:
        server: how to reach it: a command and its arguments (``["python", "-m", "weather"]``), a
            URL of streamable HTTP, or the SDK's ``StdioServerParameters``. A command is run with
            the few environment variables that the SDK deems safe.
        seconds: limit of a call.
        connect_seconds: limit of connecting, and of listing the tools.
    """

    def __init__(
        self,
        server: Sequence[str] | str | StdioServerParameters,
        *,
        seconds: float = 60.0,
        connect_seconds: float = 60.0,
    ) -> None:
        self._target = _target(server)
        self._seconds = seconds
        self._connect_seconds = connect_seconds
        self._lock = threading.Lock()
        self._link: _Link | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the server's process if it was started for it. A call after that fails."""
        with self._lock:
            if self._link is not None:
                self._link.end()
                self._link.ended.wait(LEAVE)

    def module(self, name: str | None = None) -> ModuleType:
        """Return a module with a function for each tool that the server offers now.

        Args:
            name: of the module; by default what the server calls itself, as an identifier.

        Raises:
            DefinitionError: the name is that of another module.
            ToolError: the server cannot be reached, or lists more than is reasonable.
        """
        link = self._connected()
        info = link.client.server_info
        chosen = name or identifier(info.name if info is not None else "", "tools")
        _require_free(chosen, given=name is not None)
        said = one_line(link.client.instructions, DOC_CHARS)
        doc = f"Tools of an MCP server. {said}".strip()
        return make_module(chosen, doc, self._wait(_list_tools(link.client)), self._call)

    def _call(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        client = self._connected().client
        result = self._wait(_call_tool(client, tool, arguments, self._seconds))
        if result.is_error:
            raise ToolError(f"{one_line(tool.name, 80)} failed: {message_of(result)}")
        if tool.output_schema is not None:
            _require_conforming(result, tool.output_schema)
        return from_result(result, wrapped=is_wrapped(tool))

    def _connected(self) -> _Link:
        with self._lock:
            if self._link is None:
                self._link = _Link(self._target, self._connect_seconds)
                finalize(self, self._link.end)
            self._link.check()
            return self._link

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Carry out *coroutine*; cancel it when the caller is stopped meanwhile."""
        future = _submit(_told(coroutine))
        try:
            while not future.done():
                wait([future], timeout=POLL)
        finally:
            future.cancel()  # without effect on one that is done
        return future.result()


class _Link:
    """An open connection, held by a coroutine that enters and leaves it.

    Attributes:
        client: the SDK's, for coroutines on the private event loop.
        ended: set when the connection is left and the server's process is gone.
    """

    def __init__(self, target: Any, seconds: float) -> None:
        self.ended = threading.Event()
        self._generation = background.generation()
        self._opened: Future[tuple[Client, asyncio.Event, asyncio.AbstractEventLoop]] = Future()
        _end_at_exit()
        _held.add(self)
        self._holding = _submit(self._hold(target, seconds))
        either: list[Future[Any]] = [self._opened, self._holding]
        wait(either, return_when=FIRST_COMPLETED)
        if not self._opened.done():
            error = self._holding.exception()
            why = f"no answer in {seconds:g} s" if isinstance(error, TimeoutError) else _first(error)
            raise ToolError(f"the MCP server cannot be reached: {why}") from error
        self.client, self._closing, self._loop = self._opened.result()

    async def _hold(self, target: Any, seconds: float) -> None:
        import asyncio

        from mcp import Client

        closing = asyncio.Event()
        try:
            async with (
                asyncio.timeout(seconds) as connecting,
                Client(_transport(target), read_timeout_seconds=seconds) as client,
            ):
                connecting.reschedule(None)
                self._opened.set_result((client, closing, asyncio.get_running_loop()))
                await closing.wait()
        finally:
            self.ended.set()
            _held.discard(self)

    @property
    def is_own(self) -> bool:
        """Whether it was opened in this process, not in one that this was forked from."""
        return self._generation == background.generation()

    def check(self) -> None:
        """Go on, or raise ToolError because nothing can be sent any more."""
        if not self.is_own:
            raise ToolError(
                "the connection to the MCP server belongs to the process this one was forked from; "
                "make a ToolServer here"
            )
        if self._holding.done() or self._closing.is_set():
            raise ToolError("the connection to the MCP server is closed; make another ToolServer")

    def end(self) -> None:
        """Begin to leave; `ended` says when that is done."""
        if not self.is_own:
            return
        if self._opened.done():
            self._loop.call_soon_threadsafe(self._closing.set)
        else:
            self._holding.cancel()


def _transport(target: Any) -> Any:
    """Return how to reach a server; what a command prints goes where this process's own errors go.

    That is not always ``sys.stderr``, which the SDK takes: a notebook has a stream there that is no file.
    """
    from mcp import StdioServerParameters, stdio_client

    if not isinstance(target, StdioServerParameters) or sys.__stderr__ is None:
        return target
    return stdio_client(target, errlog=sys.__stderr__)


_held: set[_Link] = set()
"""The connections of this process that are not left yet."""


@cache
def _end_at_exit() -> None:
    """End the servers that would outlive this process."""
    atexit.register(_end_all)


def _end_all() -> None:
    left = [link for link in list(_held) if link.is_own]
    for link in left:
        link.end()
    for link in left:
        link.ended.wait(LEAVE)


async def _told(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await *coroutine*; say as a ToolError what went wrong with the connection or the protocol."""
    import anyio
    from mcp import MCPError

    try:
        return await coroutine
    except ToolError:
        raise
    except MCPError as error:
        raise ToolError(f"the MCP server refused: {one_line(error.message, DOC_CHARS)}") from error
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError) as error:
        raise ToolError(f"the connection to the MCP server is lost: {_first(error)}") from error
    except (RuntimeError, ValueError) as error:  # its own schema, or the protocol, does not allow the answer
        raise ToolError(f"the MCP server gave an answer that cannot be used: {_first(error)}") from error


async def _call_tool(client: Client, tool: Tool, arguments: dict[str, Any], seconds: float) -> CallToolResult:
    """Call a tool, without the SDK's check of its answer.

    That check tries the patterns of a stranger's schema and follows all its branches, as long as it takes, on
    the event loop that the requests to models share.
    """
    from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult

    request = CallToolRequest(params=CallToolRequestParams(name=tool.name, arguments=arguments))
    return await client.session.send_request(request, CallToolResult, request_read_timeout_seconds=seconds)


def _require_conforming(result: CallToolResult, schema: dict[str, Any]) -> None:
    unusable = "the MCP server gave an answer that cannot be used"
    if result.structured_content is None and "structured_content" not in result.model_fields_set:
        raise ToolError(f"{unusable}: it has no structured content, of which the tool has a schema")
    try:
        require_conforming(result.structured_content, schema)
    except ValueError as error:
        raise ToolError(f"{unusable}: {_first(error)}") from error


async def _list_tools(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in itertools.count():
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if len(tools) > TOOLS or (cursor is not None and not page.tools):
            raise ToolError(f"the MCP server lists more than {TOOLS} tools, or goes on without end")
        if cursor is None:
            break
    return tools


def _submit(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    # Without the caller's context variables: among them is that guest code runs.
    return Context().run(background.submit, coroutine)


def _first(error: BaseException | None) -> str:
    """Return the first error of a group, in short."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(f"{type(error).__name__}: {error}", DOC_CHARS)


def _target(server: Any) -> Any:
    try:
        from mcp import StdioServerParameters
    except ImportError as error:
        raise DefinitionError('MCP servers need the SDK: pip install "agex-py[mcp]"') from error
    if isinstance(server, StdioServerParameters):
        return server
    if isinstance(server, str) and server.startswith(("http://", "https://")):
        return server
    if isinstance(server, list | tuple) and server and all(isinstance(part, str) for part in server):
        return StdioServerParameters(command=server[0], args=list(server[1:]))
    raise DefinitionError(
        f"server={server!r:.200} is no MCP server; give a command as a list (['python', '-m', 'weather']), "
        "a URL, or mcp.StdioServerParameters."
    )


def _require_free(name: str, *, given: bool) -> None:
    """Refuse a name under which the agent's code, or a reader of it, would expect another module."""
    root = name.partition(".")[0]
    known = root in sys.stdlib_module_names or root in sys.modules
    if known or (root.isidentifier() and importlib.util.find_spec(root) is not None):
        called = "" if given else "The MCP server calls itself like an installed module. "
        better = f"{root}_tools"
        raise DefinitionError(f"{called}{root!r} is an installed module; give another name: name={better!r}.")
