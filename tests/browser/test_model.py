"""The model of a tab, against a real server on loopback; the page's ``fetch`` is in node/session.mjs."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import openai_server
import pytest

from agex import Agent
from agex.browser import FetchModel
from agex.browser.model import Sending
from agex.errors import LLMFail, ModelNotConfigured
from agex.models import Image, Message, ModelError, Request, python_action, write_file

HELLO = Request(messages=(Message(role="system", content="Be brief."), Message(role="user", content="Hello")))
CODE = json.dumps({"code": "x = 1"})
KEY = "secret-key"


@dataclass
class Answered:
    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader

    async def chunks(self) -> AsyncIterator[bytes]:
        while data := await self.reader.read(5):  # cut anywhere, in the middle of characters too
            yield data


@asynccontextmanager
async def post(sending: Sending) -> AsyncIterator[Answered]:
    parts = urlsplit(sending.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        headers = {**sending.headers, "Content-Length": len(sending.body), "Host": parts.netloc}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"POST {parts.path} HTTP/1.0\r\n{head}\r\n".encode() + sending.body)
        status = int((await reader.readline()).split()[1])
        found: dict[str, str] = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            found[name.lower()] = value.strip()
        yield Answered(status, found, reader)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.fixture
def server():
    with openai_server.running() as provider:
        yield provider


def model(server: openai_server.Provider, **settings: Any) -> FetchModel:
    return FetchModel(server.url, "tiny-model", key=KEY, transport=post, **settings)


@pytest.mark.parametrize("on_text", [None, []], ids=["whole", "streamed"])
async def test_a_text_is_read_for_its_code(server: openai_server.Provider, on_text: list[str] | None) -> None:
    server.answers = [openai_server.completion("Größe:\n```python\nx = 1\n```")]

    reply = await model(server).aask(HELLO, None if on_text is None else on_text.append)

    assert reply.actions == (python_action("x = 1"),)
    assert (reply.usage.requests, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 11, 7)
    assert reply.usage.cost is None
    assert on_text is None or "".join(on_text) == reply.text == "Größe:\n```python\nx = 1\n```"


@pytest.mark.parametrize("on_text", [None, print], ids=["whole", "streamed"])
async def test_tool_calls_are_actions_and_go_back_as_they_came(
    server: openai_server.Provider, on_text: Any
) -> None:
    calls = [("python_action", CODE), ("write_file", '{"path": "a", "content": "b"}')]
    server.answers = [openai_server.completion(None, calls), openai_server.completion("done")]
    asked = Request(messages=HELLO.messages, actions=("python_action", "write_file"))

    reply = await model(server).aask(asked, on_text)

    assert reply.actions == (python_action("x = 1"), write_file("a", "b"))
    picture = Message(role="user", content="seen", images=(Image(data=b"png"),))
    said = Message(role="assistant", content="", reply=reply)
    await model(server).aask(Request(messages=(*HELLO.messages, said, picture)))
    messages = server.requests[1]["messages"]
    assert [each["role"] for each in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [call["function"]["name"] for call in messages[2]["tool_calls"]] == ["python_action", "write_file"]
    assert messages[3] == {"role": "tool", "tool_call_id": "call_0", "content": "seen"}
    assert messages[5]["content"][0]["image_url"]["url"] == "data:image/png;base64,cG5n"


async def test_a_cut_answer_is_truncated_and_does_nothing(server: openai_server.Provider) -> None:
    server.answers = [openai_server.completion("```python\nx = 1\n```", finish="length")]

    reply = await model(server).aask(HELLO)

    assert reply.truncated
    assert reply.actions == ()


async def test_a_stream_that_breaks_off_is_no_answer(server: openai_server.Provider) -> None:
    server.answers = [openai_server.stream(openai_server.chunks("```python\nx = 1\n```", None, None))]

    with pytest.raises(ModelError, match="broke off") as failed:
        await model(server).aask(HELLO, print)
    assert failed.value.retryable


@pytest.mark.parametrize(
    ("status", "retryable", "says"),
    [(401, False, "Check the key"), (404, False, "Check the URL"), (429, True, "slow"), (500, True, "slow")],
)
async def test_a_failure_says_what_to_do_and_never_the_key(
    server: openai_server.Provider, status: int, retryable: bool, says: str
) -> None:
    server.answers = [openai_server.failure(status, f"slow down {KEY}", {"Retry-After": "3"})]

    with pytest.raises(ModelError, match=says) as failed:
        await model(server).aask(HELLO)
    assert (failed.value.retryable, failed.value.retry_after) == (retryable, 3.0)
    assert KEY not in str(failed.value)
    assert KEY not in repr(failed.value.__cause__)


async def test_cancelling_gives_the_request_up(server: openai_server.Provider) -> None:
    server.answers = [openai_server.hang(server)]
    asking = asyncio.ensure_future(model(server).aask(HELLO))
    await asyncio.to_thread(server.asked.wait, 20)

    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(server.dropped.wait, 20)


async def test_a_server_that_is_silent_is_given_up(server: openai_server.Provider) -> None:
    server.answers = [openai_server.hang(server)]

    with pytest.raises(ModelError, match=r"no answer within 0\.05 s") as failed:
        await model(server, seconds=0.05).aask(HELLO)
    assert failed.value.retryable


async def test_an_agent_asks_it_in_an_async_task(server: openai_server.Provider) -> None:
    server.answers = [openai_server.completion(None, [("python_action", '{"code": "task_success(6 * 7)"}')])]
    agent = Agent(model=model(server))

    @agent.task
    async def work() -> int:
        """Multiply."""

    run = await work.arun()

    assert run.value == 42
    assert KEY not in "".join(event.model_dump_json() for event in run.events)


async def test_a_sync_task_is_told_to_be_async(server: openai_server.Provider) -> None:
    agent = Agent(model=model(server), llm_retries=0)

    @agent.task
    def work() -> int:
        """Multiply."""

    with pytest.raises(LLMFail, match="async def"):
        await asyncio.to_thread(work)


def test_the_key_is_shown_and_pickled_nowhere() -> None:
    known = FetchModel("https://api.example/v1", "m", key=KEY)

    assert KEY not in repr(known)
    with pytest.raises(TypeError, match="holds a key"):
        pickle.dumps(known)


@pytest.mark.parametrize(
    "url", ["", "api.example/v1", "file:///etc/passwd", "javascript:alert(1)", "https://"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ModelNotConfigured, match="address"):
        FetchModel(url, "m")
