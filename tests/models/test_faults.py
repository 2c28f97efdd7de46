"""Whatever a provider does, a task ends with an answer or with an error of ours that has its run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.providers.openai import OpenAIProvider

from agex import Agent, AgexError, Versioned
from agex.models.surrogates import Joined, encodable
from agex.testing import ScriptedModel
from agex.tinyagent import TinyCodeAgent

ANSWER = "```python\ntask_success(n * 2)\n```"
HEAD = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def choice(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {
        **HEAD,
        "choices": [{"index": 0, "message": message, "delta": message, "finish_reason": finish}],
        **more,
    }


def says(content: Any, **more: Any) -> dict[str, Any]:
    return choice({"role": "assistant", "content": content}, **more)


def calls(*tool_calls: Any) -> dict[str, Any]:
    return choice({"role": "assistant", "content": None, "tool_calls": list(tool_calls)}, finish="tool_calls")


def call(name: Any = "python_action", arguments: Any = '{"code": "task_success(n * 2)"}', **more: Any) -> Any:
    return {
        "index": 0,
        "id": "c",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


BODIES: dict[str, Any] = {
    "no choices": {**HEAD, "choices": []},
    "choices of another type": {**HEAD, "choices": "none"},
    "choices null": {**HEAD, "choices": None},
    "no choices at all": HEAD,
    "a choice of null": {**HEAD, "choices": [None]},
    "a choice of text": {**HEAD, "choices": ["x"]},
    "a message of null": choice(None),
    "a message of text": choice("x"),
    "a message without content": choice({"role": "assistant"}),
    "content null": says(None),
    "content empty": says(""),
    "content a number": says(5),
    "content a list": says([{"type": "text", "text": ANSWER}]),
    "content an object": says({"text": ANSWER}),
    "another role": choice({"role": "tool", "content": ANSWER}),
    "another end": says(ANSWER, finish="because"),
    "an end of null": says(ANSWER, finish=None),
    "an end of a number": says(ANSWER, finish=7),
    "a filter's end": says("", finish="content_filter"),
    "a cut answer": says(ANSWER, finish="length"),
    "usage of text": says(ANSWER, usage="much"),
    "usage null": says(ANSWER, usage=None),
    "usage below zero": says(ANSWER, usage={**USAGE, "prompt_tokens": -5}),
    "usage of text inside": says(ANSWER, usage={**USAGE, "prompt_tokens": "many"}),
    "usage beyond all": says(ANSWER, usage={**USAGE, "prompt_tokens": 10**30}),
    "created text": {**says(ANSWER), "created": "now"},
    "created beyond all": {**says(ANSWER), "created": 10**30},
    "model null": {**says(ANSWER), "model": None},
    "an error with success": {"error": {"message": "overloaded", "code": 503}},
    "an error of text": {"error": "overloaded"},
    "another dialect": {"message": {"role": "assistant", "content": ANSWER}, "done": True},
    "a list": ["a list"],
    "words": "words",
    "null": None,
    "a call without a name": calls(call(name=None)),
    "a call with an empty name": calls(call(name="")),
    "a call of a number": calls(call(name=5)),
    "a call of another tool": calls(call(name="web_search")),
    "a call without arguments": calls(call(arguments=None)),
    "a call with arguments of an object": calls(call(arguments={"code": "task_success(n * 2)"})),
    "a call with arguments that are cut": calls(call(arguments='{"code": "task')),
    "a call with arguments of a list": calls(call(arguments="[1]")),
    "a call with numbers": calls(call(arguments='{"code": 5}')),
    "a call of null": calls(None),
    "a call of text": calls("python_action"),
    "a call without a function": calls({"index": 0, "id": "c", "type": "function"}),
    "calls of text": choice({"role": "assistant", "content": None, "tool_calls": "x"}),
    "calls with the same id": calls(call(), call()),
    "half a character": says(f"\ud83d {ANSWER}"),
    "half a character in code": says("```python\ntask_success(n * len('\udc00\ud83d'))\n```"),
    "half a character in a call": calls(call(arguments='{"code": "x = \'\\ud83d\'\\ntask_success(n * 2)"}')),
    "half a character in a name": calls(call(name="\ud83d")),
    "half a character in an error": {"error": {"message": "\ud83d"}},
    "reasoning apart": choice(
        {"role": "assistant", "content": ANSWER, "reasoning_content": "```python\nbad()\n```"}
    ),
    "reasoning of a number": choice({"role": "assistant", "content": ANSWER, "reasoning_content": 5}),
    "deep nesting": says(ANSWER, extra=json.loads("[" * 200 + "]" * 200)),
}  # fmt: skip


def raw(data: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> Any:
    """Answer with these bytes."""

    def answer(handler: BaseHTTPRequestHandler, _body: Any) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def closed(handler: BaseHTTPRequestHandler, _body: Any) -> None:
    handler.connection.close()


def half(handler: BaseHTTPRequestHandler, _body: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{")
    handler.close_connection = True


def noise(handler: BaseHTTPRequestHandler, _body: Any) -> None:
    handler.wfile.write(b"\x16\x03\x01\x02\x00 no http at all\r\n\r\n")
    handler.close_connection = True


WHOLE = json.dumps(says(ANSWER)).encode()
WIRES: dict[str, Any] = {
    "nothing": raw(b""),
    "no JSON": raw(b"<html>busy</html>"),
    "a page": raw(b"<html>busy</html>", kind="text/html"),
    "JSON cut": raw(WHOLE[:40]),
    "bytes that are no text": raw(b"\xff\xfe\x00{"),
    "a byte order mark": raw(b"\xef\xbb\xbf" + WHOLE),
    "NaN": raw(WHOLE.replace(b'"created": 1', b'"created": NaN')),
    "compressed, it says": raw(WHOLE, Content_Encoding="gzip"),
    "an unknown encoding": raw(WHOLE, Content_Encoding="zzz"),
    "a redirect to nowhere": raw(b"", status=302, Location="/nowhere"),
    "a redirect without a place": raw(b"", status=302),
    "no content": raw(b"", status=204),
    "a status of no kind": raw(b"{}", status=299),
    "an error without a body": raw(b"", status=500),
    "an error of a page": raw(b"<html>bad gateway</html>", status=502, kind="text/html"),
    "an error with a bad wait": raw(b"{}", status=429, Retry_After="soon"),
    "an error with a wait below zero": raw(b"{}", status=429, Retry_After="-5"),
    "an error with no wait at all": raw(b"{}", status=429, Retry_After="nan"),
    "an error with a wait for ever": raw(b"{}", status=429, Retry_After="inf"),
    "a closed connection": closed,
    "half an answer": half,
    "no HTTP": noise,
    **{f"a refusal {status}": raw(b'{"error": {"message": "no"}}', status=status)
       for status in (400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 451, 500, 503, 529, 599)},
}  # fmt: skip


def outcome(server: Any, answer: Any, way: Callable[[Any], Any]) -> object:
    """Return the value of a task whose provider answers so, or the class of our error."""
    server.answers = [answer] * 3 + [None] * 100
    model = OpenAIChatModel("tiny-model", provider=OpenAIProvider(base_url=server.url, api_key="k"))
    agent = Agent(model=model, llm_retries=1, max_iterations=2, llm_timeout=5)

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    try:
        return way(double)
    except AgexError as error:
        failure = error
    assert failure.run is not None
    assert str(failure).encode()
    assert [event.model_dump_json() for event in failure.run.events]
    return type(failure)


WAYS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda task: task(21),
    "streamed": lambda task: task(21, on_token=lambda token: token.encode()),
    "awaited": lambda task: asyncio.run(task.arun(21)).value,
}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agex.agent.loop.loop.FIRST_BACKOFF", 0.001)


@pytest.mark.parametrize("way", [WAYS["whole"], WAYS["streamed"]], ids=["whole", "streamed"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_an_answer_of_any_form_ends_in_a_value_or_an_error_of_ours(
    openai: Any, server: Any, body: Any, way: Callable[[Any], Any]
) -> None:
    streamed = way is WAYS["streamed"]
    assert outcome(server, openai.raw(body, streamed=streamed), way)


@pytest.mark.parametrize("way", [WAYS["awaited"], WAYS["streamed"]], ids=["awaited", "streamed"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES.keys())
def test_so_does_any_fault_of_the_connection(server: Any, wire: Any, way: Callable[[Any], Any]) -> None:
    assert outcome(server, wire, way)


# Text of the answer, through the provider's own reader.


TEXTS = {
    "reasoning": f"<think>\n```python\ntask_success(n + 2)\n```\n</think>\n{ANSWER}",
    "reasoning without an opening": f"```python\ntask_success(n + 2)\n```\n</think>\n{ANSWER}",
    "reasoning of another family": f"[THINK]\n```python\ntask_success(n + 2)\n```\n[/THINK]\n{ANSWER}",
    "tags in the code": "```python\nx = '<think>a</think>'\ntask_success(n * 2 if x[0] == '<' else 0)\n```",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_what_is_said_is_read_as_it_was_written(
    openai: Any, server: Any, text: str, way: Callable[[Any], Any]
) -> None:
    assert outcome(server, openai.completion(text), way) == 42


AROUND: dict[str, Callable[[Any], Any]] = {
    "alone": lambda model: model,
    "in a wrapper": WrapperModel,
    "in two wrappers": lambda model: WrapperModel(WrapperModel(model)),
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND.keys())
def test_reasoning_that_is_never_closed_is_not_run(
    openai: Any, server: Any, around: Callable[[Any], Any]
) -> None:
    told: list[object] = []
    server.answers = [openai.completion("<think>\n```python\ntell(1)\n```"), openai.completion(ANSWER)]
    model = OpenAIChatModel("tiny-model", provider=OpenAIProvider(base_url=server.url, api_key="k"))
    agent = Agent(model=around(model))
    agent.fn(told.append, name="tell")

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    assert (double(21), told) == (42, [])


# Halves of characters.


HALF = "\ud83d"
SMILE = "\U0001f600"


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ("a", "a"),
        ("ü", "ü"),
        (SMILE, SMILE),
        ("\ud83d\ude00", SMILE),
        (HALF, "\\ud83d"),
        ("\ude00\ud83dx", "\\ude00\\ud83dx"),
    ],
)
def test_halves_that_belong_together_are_joined_and_others_spelled_out(text: str, fit: str) -> None:
    assert encodable(text) == fit


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        (["a\ud83d", "\ude00b"], ["a", f"{SMILE}b"]),
        (["\ud83d", "", "\ude00"], [SMILE]),
        (["\ud83d", "b"], ["\\ud83db"]),
        (["a\ud83d"], ["a", "\\ud83d"]),
    ],
)
def test_halves_in_two_pieces_of_a_stream_are_joined(pieces: list[str], told: list[str]) -> None:
    heard: list[str] = []
    joined = Joined(heard.append)
    for piece in pieces:
        joined(piece)
    joined.end()
    assert heard == told


def test_a_stream_of_halves_is_heard_as_characters(openai: Any, server: Any) -> None:
    parts = openai.chunks(None, None, "stop")
    deltas = [{**HEAD, "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
              for piece in ("\ud83d", "\ude00 ", ANSWER)]  # fmt: skip
    heard: list[str] = []
    way = lambda task: task(21, on_token=heard.append)  # noqa: E731
    assert outcome(server, openai.stream([*deltas, *parts]), way) == 42
    assert "".join(heard).startswith(SMILE)


def halves(*replies: str, **settings: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    agent = Agent(model=model, primer=f"Be {HALF}.", **settings)

    @agent.task(primer=f"Be {HALF} here.")
    def measure(text: str) -> int:
        """Measure it."""

    return measure, model


@pytest.mark.parametrize("state", [None, Versioned], ids=["no state", "a state"])
def test_half_a_character_ends_no_call(state: Any) -> None:
    measure, model = halves(
        f"{HALF}\n```python\nprint(text, '{HALF}')\n```",
        f"```python\nx = '{HALF}'\ntask_success(len(x))\n```",
        **({"state": state()} if state else {}),
    )
    run = measure.run(HALF, on_token=lambda token: token.encode())
    assert run.value == 1
    assert all(message.content.encode() for request in model.requests for message in request.messages)
    assert [event.model_dump_json() for event in run.events]


@pytest.mark.parametrize("end", ["task_fail", "task_clarify"])
def test_half_a_character_in_a_reason_can_be_shown(end: str) -> None:
    measure, _ = halves(f"```python\n{end}('\\ud83d')\n```")
    with pytest.raises(AgexError) as caught:
        measure("x")
    assert str(caught.value).encode() == b"\\ud83d"


def test_half_a_character_ends_no_tiny_agents_run() -> None:
    agent = TinyCodeAgent(
        model=lambda messages: f"{HALF}\n```python\nfinal_answer('{HALF}')\n```", system_suffix=HALF
    )
    assert agent.run_sync(f"Say {HALF}")
