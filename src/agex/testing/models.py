"""Test doubles of models: one plays a script, one records, one replays."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, TypeAdapter

from agex.errors import AgexError
from agex.models.actions import Action
from agex.models.base import Message, Model, ModelError, OnText, Profile, Reply, Request, Usage
from agex.models.parser import parse_text, render
from agex.regular_files import open_regular, read_regular

__all__ = ["RecordingModel", "ReplayMiss", "ReplayModel", "Script", "ScriptExhausted", "ScriptedModel"]

Answer: TypeAlias = str | Sequence[Action] | Exception | Reply
"""An answer of a script to one request."""

Script: TypeAlias = Answer | Callable[[list[Message]], Answer]
"""An answer, or a function of the messages that makes it."""

_ACTIONS: TypeAdapter[tuple[Action, ...]] = TypeAdapter(tuple[Action, ...])


class ScriptExhausted(AgexError, AssertionError):
    """A scripted model was asked more often than it has answers. Never retried."""


class ReplayMiss(AgexError, AssertionError):
    """A replayed model was asked what nobody recorded. Never retried."""


class ScriptedModel(Model):
    """A model that plays a script. Safe to share between threads.

    Args:
        replies: answers in order, or one function that answers every request. An answer is a
            text (read by the same parser as a real model's), a list of actions, an exception
            (raised as it is), a :class:`~agex.models.base.Reply` (for truncation and usage),
            or a function of the list of messages that returns one of these.
        style: how the agent should talk to it, see :class:`~agex.models.base.Profile`.
        tools: whether it poses as a model with tool calls.
        images: whether it poses as a model that sees pictures.

    Asking once more than there are answers raises :class:`ScriptExhausted`. Usage is an
    estimate, four characters a token, unless a ``Reply`` brings its own; the cost is 0.
    """

    name = "scripted"
    provider = "testing"

    def __init__(
        self,
        replies: Iterable[Script] | Callable[[list[Message]], Answer],
        *,
        style: Literal["full", "completion"] = "full",
        tools: bool = False,
        images: bool = False,
    ) -> None:
        if isinstance(replies, str):
            raise TypeError("replies is a list. Wrong: ScriptedModel('...'). Right: ScriptedModel(['...'])")
        self.profile = Profile(style=style, tools=tools, images=images)
        self.requests: list[Request] = []
        self._every = replies if callable(replies) else None
        self._replies: list[Script] = [] if callable(replies) else list(replies)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the script, for tasks that run in other processes; each goes on from here by itself."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the next answer of the script."""
        script = self._next(request)
        answer = script(list(request.messages)) if callable(script) else script
        reply = _reply(answer, request)
        if on_text is not None:
            for line in reply.text.splitlines(keepends=True):
                on_text(line)
        return reply

    def _next(self, request: Request) -> Script:
        with self._lock:
            self.requests.append(request)
            position = len(self.requests) - 1
        if self._every is not None:
            return self._every
        if position >= len(self._replies):
            raise ScriptExhausted(
                f"the script has {len(self._replies)} replies; request {position + 1} came. "
                f"Its last message:\n{_last(request)}"
            )
        return self._replies[position]


def _last(request: Request) -> str:
    return request.messages[-1].content[-2000:] if request.messages else "(no message)"


def _reply(answer: Answer | Action, request: Request) -> Reply:
    if isinstance(answer, Exception):
        raise answer
    if isinstance(answer, str):
        return _read(Reply(text=answer, usage=_estimate(request, answer)), request)
    if isinstance(answer, Reply):
        return answer if answer.actions else _read(answer, request)
    if isinstance(answer, BaseModel):  # iterating it gives its fields
        kind = type(answer).__name__
        raise TypeError(f"an answer is a list of actions. Wrong: {kind}(...). Right: [{kind}(...)]")
    text = render(answer)
    return Reply(text=text, actions=tuple(answer), usage=_estimate(request, text))


def _read(reply: Reply, request: Request) -> Reply:
    parsed = parse_text(
        reply.text, offered=request.actions, most=request.max_actions, truncated=reply.truncated
    )
    return replace(reply, actions=parsed.actions, notes=reply.notes + parsed.notes)


def _estimate(request: Request, text: str) -> Usage:
    return Usage(requests=1, input_tokens=len(str(request)) // 4, output_tokens=len(text) // 4)


@dataclass(frozen=True, kw_only=True)
class _Record:
    """One line of a recording."""

    digest: str
    request: str
    model: str
    provider: str
    profile: dict[str, Any]
    reply: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class RecordingModel(Model):
    """Ask *model* and append each request with its answer to *path*, one JSON line each.

    Failures (:class:`~agex.models.base.ModelError`) are recorded too. The provider's raw reply
    object is not. Several threads may share it; several recordings may share a file. A link is not followed.
    """

    def __init__(self, model: Model, path: str | Path) -> None:
        self.model = model
        self.name, self.provider, self.profile = model.name, model.provider, model.profile
        self.path = Path(path)
        self._lock = threading.Lock()

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Ask the recorded model and write down what it said."""
        try:
            reply = self.model.ask(request, on_text)
        except ModelError as error:
            self._write(request, error=_dump_error(error))
            raise
        self._write(request, reply=_dump(reply))
        return reply

    async def aask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Like :meth:`ask`, without blocking the event loop."""
        try:
            reply = await self.model.aask(request, on_text)
        except ModelError as error:
            self._write(request, error=_dump_error(error))
            raise
        self._write(request, reply=_dump(reply))
        return reply

    def _write(self, request: Request, **outcome: dict[str, Any]) -> None:
        record = _Record(
            digest=_digest(request),
            request=str(request),
            model=self.name,
            provider=self.provider,
            profile=asdict(self.profile),
            **outcome,
        )
        line = json.dumps(asdict(record), ensure_ascii=False) + "\n"
        # One write to a file opened for appending: lines of other recorders stay whole.
        with self._lock:
            descriptor = open_regular(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, alone=True)
            with os.fdopen(descriptor, "ab", buffering=0) as file:
                file.write(line.encode("utf-8", "surrogatepass"))


class ReplayModel(Model):
    """Answer requests from a recording at *path*.

    A request is found by its messages, images, offered actions, attempt and sample, whatever the
    order. The same request recorded several times gives its answers in sequence. A request
    that was not recorded raises :class:`ReplayMiss` with the difference to the nearest one.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        lines = read_regular(self.path).decode("utf-8", "surrogatepass").split("\n")
        records = [_Record(**json.loads(line)) for line in lines if line.strip()]
        if not records:
            raise ReplayMiss(f"{self.path} holds no recorded request")
        self.name, self.provider = records[0].model, records[0].provider
        self.profile = Profile(**records[0].profile)
        self._requests = list(dict.fromkeys(record.request for record in records))
        self._answers: dict[str, deque[_Record]] = defaultdict(deque)
        for record in records:
            self._answers[record.digest].append(record)
        self._lock = threading.Lock()

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the recorded answer to *request*."""
        digest = _digest(request)
        with self._lock:
            answers = self._answers.get(digest)
            record = answers.popleft() if answers else None
        if record is None:
            raise ReplayMiss(self._miss(request, asked_too_often=answers is not None))
        if record.error is not None:
            raise ModelError(**record.error)
        reply = _load(record.reply or {})
        if on_text is not None:
            on_text(reply.text)
        return reply

    def _miss(self, request: Request, *, asked_too_often: bool) -> str:
        if asked_too_often:
            return f"{self.path}: all recorded answers to this request were given already:\n{_last(request)}"
        text = str(request)
        nearest = max(self._requests, key=lambda other: _likeness(text, other))
        if nearest == text:
            return f"{self.path}: the text was recorded, with other images, actions or another attempt"
        old, new = nearest.splitlines(), text.splitlines()
        difference = "\n".join(difflib.unified_diff(old, new, "recorded", "asked", lineterm=""))
        return f"{self.path}: this request was not recorded. The nearest one:\n{difference}"


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.splitlines(), other.splitlines(), autojunk=False).ratio()


def _digest(request: Request) -> str:
    messages = [
        (m.role, m.content, [(i.media_type, hashlib.sha256(i.data).hexdigest()) for i in m.images])
        for m in request.messages
    ]
    which = [request.sample] if request.sample else []  # recordings of before have none
    key = json.dumps([messages, list(request.actions), request.attempt, request.prefill, *which])
    return hashlib.sha256(key.encode()).hexdigest()


def _dump_error(error: ModelError) -> dict[str, Any]:
    return {"message": str(error), "retryable": error.retryable, "retry_after": error.retry_after}


def _dump(reply: Reply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "actions": _ACTIONS.dump_python(reply.actions, mode="json"),
        "notes": list(reply.notes),
        "truncated": reply.truncated,
        "usage": asdict(reply.usage),
    }


def _load(data: dict[str, Any]) -> Reply:
    return Reply(
        text=data["text"],
        actions=_ACTIONS.validate_python(data["actions"]),
        notes=tuple(data["notes"]),
        truncated=data["truncated"],
        usage=Usage(**data["usage"]),
    )
