"""Chat completions, as OpenAI defined them and many servers speak them: requests and replies as data.

Nothing here sends anything. Source: the chat completions API reference of OpenAI, and the HTML standard
for server-sent events.
"""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agex.models.actions import TOOLS, parameters_of
from agex.models.base import Image, Message, ModelError, OnText, Reply, Request, Usage
from agex.models.parser import Parsed, parse_calls, parse_text

__all__ = ["Answer", "failure", "payload"]


# --- requests -----------------------------------------------------------------------------------


def payload(model: str, request: Request, *, tools: bool, stream: bool) -> dict[str, Any]:
    """Return the body of a request.

    Args:
        model: its name.
        request: the conversation.
        tools: whether actions are offered as tool calls.
        stream: whether the answer is to come in pieces.
    """
    body: dict[str, Any] = {"model": model, "messages": _messages(request.messages)}
    if tools and request.actions:
        body["tools"] = [_tool(name) for name in request.actions]
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def _tool(name: str) -> dict[str, Any]:
    function = {"name": name, "description": TOOLS[name][0], "parameters": parameters_of(name)}
    return {"type": "function", "function": function}


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Translate a conversation: what follows tool calls answers them, each with its own result."""
    translated: list[dict[str, Any]] = []
    for message in messages:
        calls = translated[-1].get("tool_calls", []) if translated else []
        if message.role == "assistant":
            translated.append(_said(message))
        elif message.role == "user" and calls:
            translated += _results(message, calls)
            if message.images:
                translated.append({"role": "user", "content": _parts("", message.images)})
        else:
            translated.append({"role": message.role, "content": _parts(message.text, message.images)})
    return translated


def _said(message: Message) -> dict[str, Any]:
    """Return what the model said, in its own words where they are whole."""
    raw = message.reply.raw if message.reply is not None and not message.reply.truncated else None
    if isinstance(raw, dict):
        return raw
    # A cut tool call is not valid JSON, and no server takes an empty message.
    return {"role": "assistant", "content": message.content.strip() or "(no answer)"}


def _results(message: Message, calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for text, call in zip(message.answers(len(calls)), calls, strict=True):
        yield {"role": "tool", "tool_call_id": call["id"], "content": text}


def _parts(text: str, images: tuple[Image, ...]) -> str | list[dict[str, Any]]:
    if not images:
        return text
    shown = [
        {"type": "image_url", "image_url": {"url": f"data:{each.media_type};base64,{_base64(each.data)}"}}
        for each in images
    ]
    return [{"type": "text", "text": text}, *shown] if text else shown


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


# --- replies ------------------------------------------------------------------------------------


@dataclass
class _Call:
    """A tool call, as far as it has come."""

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Answer:
    """An answer that is read as it comes, whole or in pieces.

    Attributes:
        on_text: called with each piece of the text.
    """

    on_text: OnText | None = None
    _text: list[str] = field(default_factory=list)
    _calls: dict[int, _Call] = field(default_factory=dict)
    _finish: str | None = None
    _usage: Mapping[str, Any] = field(default_factory=dict)
    _line: str = ""
    _decoder: Any = field(default_factory=codecs.getincrementaldecoder("utf-8"))

    def feed(self, data: bytes) -> None:
        """Take more of a stream of server-sent events.

        Raises:
            ModelError: the server says in it that it failed, or it cannot be read.
        """
        self._line += self._decoder.decode(data)
        *lines, self._line = self._line.replace("\r\n", "\n").split("\n")
        for line in lines:
            name, _, value = line.partition(":")
            if name == "data" and value.strip() != "[DONE]":
                self.take(value)

    def take(self, text: str) -> None:
        """Take one JSON object: a piece of a stream, or all of an answer.

        Raises:
            ModelError: it is none, or tells of an error.
        """
        data = _object(text)
        if data.get("error"):
            raise ModelError(f"the server broke off: {_told(data)}", retryable=True)
        self._usage = data.get("usage") or self._usage
        for choice in data.get("choices") or ():
            self._take_choice(choice)

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        said = choice.get("delta") or choice.get("message") or {}
        if said.get("content"):
            self._text.append(said["content"])
            self._tell(said["content"])
        for number, call in enumerate(said.get("tool_calls") or ()):
            self._take_call(call.get("index", number), call)
        self._finish = choice.get("finish_reason") or self._finish

    def _take_call(self, number: int, call: Mapping[str, Any]) -> None:
        known = self._calls.setdefault(number, _Call())
        function = call.get("function") or {}
        known.id = call.get("id") or known.id
        known.name += function.get("name") or ""
        known.arguments += function.get("arguments") or ""

    def _tell(self, text: str) -> None:
        if self.on_text is not None:
            self.on_text(text)

    def reply(self, request: Request) -> Reply:
        """Return the whole answer.

        Raises:
            ModelError: there is none, or the server withholds it.
        """
        if self._finish is None:
            raise ModelError("the answer broke off before its end", retryable=True)
        if self._finish == "content_filter":
            raise ModelError("the provider's content filter withheld the answer", retryable=False)
        text = "".join(self._text)
        calls = [self._calls[number] for number in sorted(self._calls)]
        for number, call in enumerate(calls):
            call.id = call.id or f"call_{number}"  # some servers give none, and all want one back
        truncated = self._finish == "length"
        parsed = Parsed() if truncated else _parsed(text, calls, request)
        return Reply(
            text=text,
            actions=parsed.actions,
            notes=parsed.notes,
            truncated=truncated,
            usage=self._used(),
            raw=_own_words(text, calls),
        )

    def _used(self) -> Usage:
        return Usage(
            requests=1,
            input_tokens=self._usage.get("prompt_tokens") or 0,
            output_tokens=self._usage.get("completion_tokens") or 0,
            cost=None,
        )


def _parsed(text: str, calls: list[_Call], request: Request) -> Parsed:
    if calls:
        return parse_calls(
            [(call.name, call.arguments) for call in calls], offered=request.actions, most=request.max_actions
        )
    return parse_text(text, offered=request.actions, most=request.max_actions)


def _own_words(text: str, calls: list[_Call]) -> dict[str, Any] | None:
    """Return the message to send back as it was; None where there is nothing to send."""
    if not calls:
        return {"role": "assistant", "content": text} if text.strip() else None
    told = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": told}


def _object(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ModelError(f"the answer is no JSON object: {text.strip()[:200]!r}", retryable=True)
    return data


# --- failures -----------------------------------------------------------------------------------


def failure(status: int, headers: Mapping[str, str], body: str) -> ModelError:
    """Return what a status other than 200 means.

    Args:
        status: of HTTP.
        headers: by name, in small letters.
        body: what the server says of it.
    """
    try:
        told = _told(_object(body))
    except ModelError:
        told = body.strip()[:300]
    retryable = status in (408, 409, 425, 429) or status >= 500
    advice = "" if retryable else f" {_ADVICE.get(status, 'Sending it again will not help.')}"
    return ModelError(
        f"HTTP {status}: {told}{advice}",
        retryable=retryable,
        retry_after=_seconds(headers.get("retry-after")),
    )


_ADVICE = {
    401: "Check the key.",
    403: "Check that the key may use this model.",
    404: "Check the URL, which ends in /v1 for most servers, and the model's name.",
}


def _told(data: Mapping[str, Any]) -> str:
    error = data.get("error") or data
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or data)[:300]


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None  # a date: the loop waits as long as it would anyway
