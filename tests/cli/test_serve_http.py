"""``agex serve-mcp --http`` as a process of its own: who is served, and who is not.

Stopped by: cli.serve_http.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from agex.cli.serve_http import TOKEN, HttpAddress, listening
from agex.errors import DefinitionError

TASKS = '''
from agex import Agent
from agex.testing import ScriptedModel, python_action


def scripted(*codes):
    def reply(messages):
        return "```python\\n" + codes[len(messages) // 2 - 1] + "\\n```"

    return Agent(model=ScriptedModel(reply))


@scripted("print('noise')", "task_success(n * 2)").task
async def double(n: int) -> int:
    """Double it."""


@scripted("task_clarify('Which one?')", "task_success('x')").task
def ask() -> str: ...
'''
SECRET = "a-token-of-some-length"


@contextmanager
def serving(folder: Path, *arguments: str, token: str | None = None) -> Iterator[str]:
    """Serve; yield the address."""
    (folder / "tasks.py").write_text(TASKS)
    command = [
        sys.executable,
        "-c",
        "from agex.cli import main; main()",
        "serve-mcp",
        "tasks:double",
        "tasks:ask",
    ]
    env = {name: value for name, value in os.environ.items() if name != TOKEN}
    env |= {TOKEN: token} if token is not None else {}
    process = subprocess.Popen(
        [*command, *arguments], cwd=folder, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        assert said.startswith("serving at http://"), said + process.stderr.read()
        yield said.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode in (0, -signal.SIGTERM)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("open"), "--http", "0") as address:
        yield address


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    arguments = ("--http", "127.0.0.1:0", "--allow-host", "tools.example.org")
    with serving(tmp_path_factory.mktemp("guarded"), *arguments, token=SECRET) as address:
        yield address


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdks_client_calls_tasks_with_progress_and_answers(address: str, mode: Any) -> None:
    told: list[float] = []

    async def progress(at: float, total: float | None, message: str | None) -> None:
        told.append(at)

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"answer": params.message})

    async with Client(address, mode=mode, elicitation_callback=answer) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["double", "ask"]
        doubled = await client.call_tool("double", {"n": 4}, progress_callback=progress)
        asked = await client.call_tool("ask", {})
    assert doubled.structured_content == {"result": 8}
    assert told == [1, 2]
    assert asked.structured_content == {"result": "x"}


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def status(address: str, **headers: str) -> int:
    """Return what a raw request is answered with."""
    usual = {"accept": "application/json, text/event-stream"}
    with httpx2.Client(trust_env=False) as client:
        return client.post(address, json=INITIALIZE, headers={**usual, **headers}).status_code


STRANGE_HEADERS: list[tuple[dict[str, str], int]] = [
    ({"host": "evil.example"}, 421),
    ({"host": "evil.example:{port}"}, 421),
    ({"host": "127.0.0.1:1"}, 421),
    ({"host": "127.0.0.1"}, 421),
    ({"host": "127.0.0.1:{port}.evil.example"}, 421),
    ({"host": "tools.example.org"}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://localhost:1"}, 403),
    ({"origin": "http://127.0.0.1:{port}.evil.example"}, 403),
    ({"content-type": "text/plain"}, 400),
]


@pytest.mark.parametrize(("headers", "code"), STRANGE_HEADERS, ids=str)
def test_pages_of_others_and_names_of_others_are_refused(
    address: str, headers: dict[str, str], code: int
) -> None:
    port = address.rpartition(":")[2].partition("/")[0]
    assert status(address, **{name: value.format(port=port) for name, value in headers.items()}) == code


def test_its_own_names_and_pages_are_served(address: str) -> None:
    port = address.rpartition(":")[2].partition("/")[0]
    assert status(address) == 200
    assert status(address, host=f"localhost:{port}", origin=f"http://localhost:{port}") == 200


async def test_with_a_token_only_its_holders_are_served(guarded: str) -> None:
    assert status(guarded) == 401
    for wrong in (
        "Bearer x",
        "Bearer",
        f"Basic {SECRET}",
        SECRET,
        f"Bearer {SECRET}x",
        f"Bearer {SECRET[:-1]}",
    ):
        assert status(guarded, authorization=wrong) == 401
    assert status(guarded, authorization=f"Bearer {SECRET}") == 200
    headers = {"authorization": f"Bearer {SECRET}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(guarded, http_client=http)) as client,
    ):
        assert (await client.call_tool("double", {"n": 3})).structured_content == {"result": 6}


def test_the_token_opens_no_other_name(guarded: str) -> None:
    known = f"Bearer {SECRET}"
    assert status(guarded, authorization=known, host="tools.example.org") == 200
    assert status(guarded, authorization=known, host="evil.example") == 421
    assert status(guarded, authorization=known, origin="http://evil.example") == 403


def test_what_is_printed_does_no_harm_and_the_process_ends_when_told(tmp_path: Path) -> None:
    with serving(tmp_path, "--http", "localhost:0") as address:
        assert address.startswith("http://localhost:")
        assert status(address) == 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.0.0.0:8000", "others can reach 0.0.0.0"),
        ("[::]:8000", "others can reach ::"),
        ("192.0.2.7:8000", "Put a token"),
        ("tools.example.org:80", "others can reach tools.example.org"),
        ("localhost.evil.example:80", "others can reach"),
        ("http://127.0.0.1:80", "is no address"),
        ("", "is no address"),
        ("x", "is no address"),
        ("70000", "is no address"),
        ("-1", "is no address"),
        ("::1:80", "is no address"),
        ("٣", "is no address"),
    ],
)
def test_an_address_that_others_reach_needs_a_token(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with pytest.raises(DefinitionError) as caught:
        HttpAddress.read(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8000", "127.0.0.1", 8000),
        ("localhost:1", "localhost", 1),
        ("[::1]:0", "::1", 0),
        (":7", "127.0.0.1", 7),
    ],
)
def test_the_loopback_interface_needs_none(
    text: str, host: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    assert HttpAddress.read(text) == HttpAddress(host=host, port=port)


def test_every_address_of_a_machine_needs_names_beside_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    with pytest.raises(DefinitionError, match="--allow-host"):
        HttpAddress.read("0.0.0.0:80")
    address = HttpAddress.read("0.0.0.0:80", ["tools.example.org"])
    assert "tools.example.org" in address.hosts(80)


@pytest.mark.parametrize(
    "token", ["", "short", " " * 20, "grüße-grüße-grüße", "with a blank in its text", "x\n" * 9]
)
def test_a_token_that_is_none_is_refused_and_does_not_mean_that_nobody_needs_one(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, token)
    with pytest.raises(DefinitionError, match="is no token"):
        HttpAddress.read("8000")


def test_an_address_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DefinitionError, match=f"127.0.0.1:{port} cannot be had"):
            listening(HttpAddress(port=port))
