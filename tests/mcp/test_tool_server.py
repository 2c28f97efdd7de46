"""Tools of real servers, in processes of their own, called as Python functions."""

from __future__ import annotations

import gc
import inspect
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mcp import StdioServerParameters

from agex.errors import DefinitionError, ToolError
from agex.mcp import ToolServer

SERVERS = str(Path(__file__).parent / "servers.py")
LIBRARY = [sys.executable, SERVERS, "library"]


@pytest.fixture(scope="module")
def books() -> Iterator[ModuleType]:
    with ToolServer(LIBRARY) as server:
        yield server.module()


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_is_a_module_of_its_own_name(books: ModuleType) -> None:
    assert books.__name__ == "book_library"
    assert books.__doc__ == "Tools of an MCP server. Look books up before you lend them."


SIGNATURES = {
    "count": "(shelf: str, at_least: int = 0, kind: Literal['novel', 'atlas'] = 'novel') -> int",
    "titles": "(shelves: list[str], only: Optional[dict[str, int]] = None) -> list[str]",
    "card": "(title: str) -> dict[str, str]",
    "note": "(text: str) -> Any",
    "wait": "(seconds: float) -> str",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_function_has_the_signature_of_the_tools_schema(books: ModuleType, name: str) -> None:
    assert str(inspect.signature(getattr(books, name))) == SIGNATURES[name]


def test_a_function_says_what_the_tool_says(books: ModuleType) -> None:
    assert books.count.__doc__ == "Count the books on a shelf."


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("count", ("abc",), {}, 3),
    ("count", ("abc", 1), {"kind": "atlas"}, 5),
    ("titles", (("a", "b"),), {"only": {"b": 2}}, ["a 0", "b 2"]),
    ("titles", (["a"], None), {}, ["a 0"]),
    ("card", ("Atlas",), {}, {"title": "Atlas", "place": "A1"}),
    ("note", ("Grüße\n",), {}, "noted: Grüße\n"),
    ("cover", (), {}, b"\x89PNG pixel"),
]


@pytest.mark.parametrize(("name", "args", "kwargs", "value"), CALLS)
def test_an_answer_is_a_python_value(
    books: ModuleType, name: str, args: Any, kwargs: Any, value: Any
) -> None:
    assert getattr(books, name)(*args, **kwargs) == value


def test_a_tool_that_fails_is_an_error_with_its_words(books: ModuleType) -> None:
    with pytest.raises(RuntimeError) as caught:
        books.lend("Emma")
    assert isinstance(caught.value, ToolError)
    assert str(caught.value) == "lend failed: Error executing tool lend: Emma is lent already"


def test_arguments_that_the_server_refuses_are_an_error_and_do_no_harm(books: ModuleType) -> None:
    with pytest.raises(ToolError, match="valid integer"):
        books.count("abc", at_least="many")
    assert books.count("abc") == 3


def test_arguments_that_the_signature_does_not_have_are_refused_here(books: ModuleType) -> None:
    with pytest.raises(TypeError, match="shelf"):
        books.count()
    with pytest.raises(TypeError, match="extra"):
        books.count("abc", extra=1)


def test_many_threads_call_at_once(books: ModuleType) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: books.count("x" * n), range(40))) == list(range(40))


def test_a_call_that_takes_too_long_is_an_error_and_the_next_one_works() -> None:
    with ToolServer(LIBRARY, seconds=0.5) as server:
        books = server.module()
        with pytest.raises(ToolError, match=r"[Tt]imed out"):
            books.wait(seconds=60)
        assert books.wait(seconds=0) == "waited"


def test_a_server_that_ends_is_an_error_now_and_later() -> None:
    with ToolServer(LIBRARY) as server:
        books = server.module()
        with pytest.raises(ToolError):
            books.crash()
        with pytest.raises(ToolError):
            books.count("abc")


def test_closing_ends_the_process_and_calls_after_it_say_so() -> None:
    with ToolServer(LIBRARY) as server:
        books = server.module()
        process = books.process()
        assert is_running(process)
    assert not is_running(process)
    with pytest.raises(ToolError, match="closed"):
        books.count("abc")


def test_a_server_ends_with_its_last_user() -> None:
    server = ToolServer(LIBRARY)
    books = server.module()
    link = server._link
    assert link is not None
    del server, books
    gc.collect()
    assert link.ended.wait(30)


def test_a_server_that_does_not_leave_ends_with_the_process_that_started_it() -> None:
    program = f"""
from agex.mcp import ToolServer
held = ToolServer({[sys.executable, SERVERS, "stubborn"]!r})
print(held.module().process())
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not is_running(int(told.stdout))


def test_a_server_gets_few_of_the_hosts_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_TOKEN", "sesame")
    with ToolServer(
        StdioServerParameters(command=LIBRARY[0], args=LIBRARY[1:], env={"SHELVES": "3"})
    ) as server:
        names = server.module().environment()
    assert "A_SECRET_TOKEN" not in names
    assert "SHELVES" in names


def test_a_server_is_reached_over_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, SERVERS, "http", str(listening.fileno())]
        process = subprocess.Popen(command, pass_fds=[listening.fileno()])
        try:
            with ToolServer(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp") as server:
                assert server.module().count("abc", at_least=1) == 4
        finally:
            process.terminate()
            process.wait()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/nonexistent/server"], "FileNotFoundError"),
        ([sys.executable, "-c", "raise SystemExit(1)"], "Connection closed"),
        ([sys.executable, SERVERS, "silent"], "no answer in 0.5 s"),
        ([sys.executable, SERVERS, "babbling"], "no answer in 0.5 s"),
    ],
    ids=["no program", "ends at once", "silent", "babbling"],
)
@pytest.mark.usefixtures("_quiet")
def test_a_server_that_cannot_be_reached_says_why_and_leaves_no_process(command: list[str], why: str) -> None:
    seconds = 0.5 if why.startswith("no answer") else 30.0
    before = set(threading.enumerate())
    with ToolServer(command, connect_seconds=seconds) as server, pytest.raises(ToolError, match=why):
        server.module()
    left = [thread.name for thread in set(threading.enumerate()) - before]
    assert [name for name in left if name != "agex-models"] == []


@pytest.fixture
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Keep what the SDK logs of a server's babble out of the output."""
    caplog.set_level("CRITICAL", logger="mcp.client.stdio")


@pytest.mark.parametrize("server", ["python server.py", [], [1], None, "ftp://host", {"command": "x"}])
def test_what_is_no_server_is_refused(server: Any) -> None:
    with pytest.raises(DefinitionError, match="is no MCP server; give a command as a list"):
        ToolServer(server)


def test_without_the_sdk_the_host_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(DefinitionError, match="pip install"):
        ToolServer(LIBRARY)


@pytest.mark.parametrize("name", ["endless", "crowded"])
def test_a_list_of_more_tools_than_is_reasonable_is_given_up(name: str) -> None:
    with (
        ToolServer([sys.executable, SERVERS, name]) as server,
        pytest.raises(ToolError, match="more than 500 tools"),
    ):
        server.module()


def test_a_forked_process_is_told_to_make_a_connection_of_its_own(books: ModuleType) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            books.count("abc")
        except ToolError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        assert "make a ToolServer here" in told.read()
