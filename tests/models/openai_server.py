"""A provider on loopback that speaks OpenAI's chat completions, as the test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


@dataclass
class Provider:
    """The running server."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    asked: threading.Event = field(default_factory=threading.Event)
    dropped: threading.Event = field(default_factory=threading.Event)


@contextmanager
def running() -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            provider.requests.append(body)
            provider.asked.set()
            provider.answers.pop(0)(self, body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64  # all clients of a test may knock at once

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def completion(
    text: str | None = None, calls: list[tuple[str, str]] | None = None, finish: str = "stop"
) -> Answer:
    """Answer whole or streamed, as the request asks."""

    def answer(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if body.get("stream"):
            stream(chunks(text, calls, finish))(handler, body)
            return
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [_call(n, name, args) for n, (name, args) in enumerate(calls)]
        choice = {"index": 0, "message": message, "finish_reason": finish}
        _send(handler, 200, {**_head("chat.completion"), "choices": [choice], "usage": _USAGE})

    return answer


def chunks(text: str | None, calls: list[tuple[str, str]] | None, finish: str | None) -> list[dict[str, Any]]:
    """Cut an answer into the pieces of a stream, three characters each."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": piece} for piece in _pieces(text or "")]
    for number, (name, arguments) in enumerate(calls or []):
        deltas.append({"tool_calls": [_call(number, name, "")]})
        deltas.extend(
            {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
            for piece in _pieces(arguments)
        )
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    if finish is not None:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    whole = [{**_head("chat.completion.chunk"), "choices": [choice]} for choice in choices]
    return [*whole, {**_head("chat.completion.chunk"), "choices": [], "usage": _USAGE}] if finish else whole


def stream(parts: list[dict[str, Any]]) -> Answer:
    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for part in parts:
            handler.wfile.write(f"data: {json.dumps(part)}\n\n".encode())
        if parts and not parts[-1]["choices"]:
            handler.wfile.write(b"data: [DONE]\n\n")

    return answer


def raw(body: object, *, streamed: bool = False) -> Answer:
    """Answer with whatever JSON there is: another dialect."""

    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        text = f"data: {json.dumps(body)}\n\n" if streamed else json.dumps(body)
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
        handler.end_headers()
        handler.wfile.write(text.encode())

    return answer


def failure(status: int, message: str = "no", headers: dict[str, str] | None = None) -> Answer:
    return lambda handler, _body: _send(handler, status, {"error": {"message": message}}, headers)


def hang(provider: Provider) -> Answer:
    """Never answer; notice when the client goes away."""

    def answer(handler: BaseHTTPRequestHandler, _body: dict[str, Any]) -> None:
        handler.connection.settimeout(30)
        if handler.rfile.read(1) == b"":
            provider.dropped.set()

    return answer


_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def _head(kind: str) -> dict[str, Any]:
    return {"id": "c1", "object": kind, "created": 1, "model": "tiny-model"}


def _call(number: int, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": number, "id": f"call_{number}", "type": "function", "function": function}


def _pieces(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


def _send(
    handler: BaseHTTPRequestHandler, status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> None:
    data = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
