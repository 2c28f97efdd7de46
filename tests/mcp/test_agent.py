"""Tools in an agent's hands: listed, called, failing, in sync and in async tasks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agex import Agent, DefinitionError, MemberSpec, TaskSuspended, Versioned
from agex.mcp import ToolServer
from agex.testing import ScriptedModel, python_action

COMMAND = [sys.executable, str(Path(__file__).parent / "servers.py"), "library"]


@pytest.fixture(scope="module")
def server() -> Iterator[ToolServer]:
    with ToolServer(COMMAND) as server:
        yield server


def scripted(*codes: str, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([[python_action(code)] for code in codes])
    return Agent(model=model, **settings), model


def test_agent_code_calls_tools_as_functions_of_a_module(server: ToolServer) -> None:
    agent, model = scripted(
        "import book_library as books\n"
        "try:\n    books.lend('Emma')\nexcept RuntimeError as e:\n    print(e)\n"
        "books.card('Emma')['place']",
        "task_success(books.titles(['a'], only={'a': books.count('xyz')}))",
    )
    assert agent.mcp(server) is server

    @agent.task
    def find() -> list[str]:
        """Find titles."""

    assert find() == ["a 3"]
    prompt = model.requests[0].messages[0].content
    assert "import book_library  # Tools of an MCP server. Look books up before you lend them." in prompt
    assert "card(title: str) -> dict[str, str]  # Give the card of a book." in prompt
    assert model.requests[1].messages[-1].content == (
        "lend failed: Error executing tool lend: Emma is lent already\n'A1'"
    )


@pytest.mark.parametrize("isolation", ["process", "kernel"])
def test_code_in_a_worker_calls_tools_that_stay_in_the_host(server: ToolServer, isolation: str) -> None:
    agent, _ = scripted(
        "import books\n"
        "try:\n    books.lend('Emma')\nexcept RuntimeError as e:\n    said = str(e)\n"
        "task_success([books.count('ab', at_least=1), books.card('Emma')['place'], said])",
        isolation=isolation,
    )
    agent.mcp(server, name="books")

    @agent.task
    def find() -> list[Any]:
        """Find."""

    assert find() == [3, "A1", "lend failed: Error executing tool lend: Emma is lent already"]


def test_a_tool_that_acts_on_the_world_waits_for_a_persons_yes(server: ToolServer) -> None:
    agent, _ = scripted("import books\ntask_success(books.note('Emma'))", state=Versioned())
    agent.mcp(server, name="books", include="note", external=True, approval=True)

    @agent.task
    def find() -> str:
        """Find."""

    with pytest.raises(TaskSuspended) as stopped:
        find()
    assert str(stopped.value.call) == "books.note('Emma')"
    assert stopped.value.run.approve({"text": "Persuasion"}).value == "noted: Persuasion"


def test_one_tool_of_a_server_is_marked_and_the_others_are_not(server: ToolServer) -> None:
    state = Versioned()
    code = "import books\nfound = books.count('ab')\ntask_success(f\"{found} {books.note('Emma')}\")"
    agent, _ = scripted(code, state=state)
    agent.mcp(server, name="books", configure={"note": MemberSpec(external=True)})

    @agent.task
    def find() -> str:
        """Find."""

    assert find() == "2 noted: Emma"
    begun = [commit.message for commit in state.history() if commit.message.endswith("begins")]
    assert begun == ["find: turn 1, books.note begins"]


async def test_an_async_task_calls_tools_too_and_its_event_loop_stays_free(server: ToolServer) -> None:
    agent, _ = scripted("import books\ntask_success([books.wait(0.05), books.count('ab')])")
    agent.mcp(server, name="books")

    @agent.task
    async def find() -> list[Any]:
        """Find."""

    steps = 0

    async def beat() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(0)

    beating = asyncio.ensure_future(beat())
    assert await find() == ["waited", 2]
    beating.cancel()
    assert steps > 100


async def test_a_cancelled_task_gives_up_its_tool(server: ToolServer) -> None:
    agent, _ = scripted("import books\nstarted()\nbooks.wait(600)")
    agent.mcp(server, name="books")
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    @agent.fn
    def started() -> None:
        loop.call_soon_threadsafe(begun.set)

    @agent.task
    async def find() -> str:
        """Find."""

    running = asyncio.ensure_future(find())
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_help_shows_what_the_tool_says(server: ToolServer) -> None:
    agent, model = scripted("import books\nhelp(books.count)", "help(books)", "task_success(1)")
    agent.mcp(server, name="books")

    @agent.task
    def look() -> int: ...

    assert look() == 1
    first, second = (request.messages[-1].content for request in model.requests[1:])
    assert first == (
        "count(shelf: str, at_least: int = 0, kind: Literal['novel', 'atlas'] = 'novel') -> int\n\n"
        "Count the books on a shelf."
    )
    assert "note(text: str) -> Any  # Give plain text." in second


def test_tools_can_be_left_out(server: ToolServer) -> None:
    agent, model = scripted("import books\nbooks.crash()", "task_success(books.count('a'))")
    agent.mcp(server, name="books", exclude=["crash", "lend"])

    @agent.task
    def look() -> int: ...

    assert look() == 1
    assert "crash" not in model.requests[0].messages[0].content
    assert "Error" in model.requests[1].messages[-1].content


def test_a_command_is_taken_as_it_is() -> None:
    agent, _ = scripted("import book_library\ntask_success(book_library.count('abcd'))")
    assert agent.mcp(COMMAND) is COMMAND

    @agent.task
    def look() -> int: ...

    assert look() == 4


def test_two_servers_of_one_name_need_two_names(server: ToolServer) -> None:
    agent, _ = scripted()
    agent.mcp(server)
    with pytest.raises(DefinitionError, match="register this one as name="):
        agent.mcp(server)
    agent.mcp(server, name="other_books")
    assert [one.name for one in agent.registrations] == ["book_library", "other_books"]


def test_a_name_that_is_no_identifier_is_refused(server: ToolServer) -> None:
    with pytest.raises(DefinitionError, match="cannot be a name"):
        Agent().mcp(server, name="my books")
