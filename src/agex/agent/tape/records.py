"""The lines of a tape: one JSON object each, which a schema checks when it is read.

::

    tape      the first line: the version of the form
    run       a run begins: its task, its means, its inputs
    message   a message of a conversation; requests name messages by their number
    answer    a request to a model, and its answer
    call      a use of something of the host, and its outcome
    clock     a value that a clock, or a source of chance, gave
    end       a run is over, or waits

A tape may come from a stranger. Its values are plain JSON, or go through the codec of the state's variables.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from agex.agent.durable.records import Record, ReplyRecord
from agex.models.base import ModelError, Profile

__all__ = [
    "VERSION",
    "AnswerLine",
    "CallLine",
    "ClockLine",
    "EndLine",
    "Entry",
    "Line",
    "MessageLine",
    "ModelErrorRecord",
    "ModelRecord",
    "RunLine",
    "TapeLine",
    "ValueRecord",
]

VERSION = 1

Of: TypeAlias = str | int
"""A registered thing by its name, or a live object that a call returned by its number."""


class ValueRecord(Record):
    """A value."""

    plain: Any = None
    stream: bytes | None = None
    """Of the codec, where the value is not plain JSON."""
    buffers: tuple[bytes, ...] = ()
    masked: bool = False
    """Whether the value was left out. It is not compared."""

    @model_serializer(mode="wrap")
    def _short(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        if self.masked:
            return {"masked": True}
        found: dict[str, Any] = whole(self)
        names = ("plain",) if self.stream is None else ("stream", "buffers")
        return {name: found[name] for name in names if found[name] or name == "plain"}


class ModelRecord(Record):
    """A model, as far as the form of its requests depends on it."""

    name: str
    provider: str
    style: Literal["full", "completion"] = "full"
    tools: bool = True
    images: bool = False

    def profile(self) -> Profile:
        """Return the form of prompt that suits it."""
        return Profile(style=self.style, tools=self.tools, images=self.images)


class ModelErrorRecord(Record):
    """A request that failed."""

    message: str
    retryable: bool
    retry_after: float | None = None

    def error(self) -> ModelError:
        """Return the error."""
        return ModelError(self.message, retryable=self.retryable, retry_after=self.retry_after)


class TapeLine(Record):
    """The first line."""

    kind: Literal["tape"] = "tape"
    version: int


class RunLine(Record):
    """A run begins."""

    kind: Literal["run"] = "run"
    run: int
    parent: int | None = None
    """The run whose code called the task."""
    agent: str
    task: str
    means: dict[str, str] = Field(default_factory=dict)
    """The things that its code may use, each as text by its name."""
    models: tuple[ModelRecord, ...] = ()
    sample: int | None = None
    """Which of the samples of a call it is."""
    kept_code: str | None = None
    """Code that solved the task before, and was tried first."""
    seed: int
    """Of the generators of random numbers."""
    inputs: dict[str, ValueRecord] = Field(default_factory=dict)
    objects: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Descriptions of the live objects and classes that are registered, by name."""


class MessageLine(Record):
    """A message of a conversation."""

    kind: Literal["message"] = "message"
    number: int
    role: Literal["system", "user", "assistant"]
    text: str = ""
    images: tuple[str, ...] = ()
    """Digests."""


class AnswerLine(Record):
    """A request, and its answer."""

    kind: Literal["answer"] = "answer"
    run: int
    turn: int
    model: int
    messages: tuple[int, ...] = ()
    actions: tuple[str, ...] = ()
    attempt: int = 0
    prefill: str = ""
    reply: ReplyRecord | None = None
    error: ModelErrorRecord | None = None


class CallLine(Record):
    """A use of something of the host."""

    kind: Literal["call"] = "call"
    run: int
    turn: int
    line: int | None = None
    source: str = ""
    text: str = ""
    """The call as it is shown."""
    what: Literal["call", "get", "set", "delete", "method", "operator"]
    of: Of
    name: str | None = None
    args: tuple[ValueRecord, ...] = ()
    kwargs: dict[str, ValueRecord] = Field(default_factory=dict)
    result: ValueRecord | None = None
    error: dict[str, Any] | None = None
    out: str = ""
    """The text that it printed."""
    concurrent: bool = False
    """Whether calls like it overlap, so that their order is not certain."""


class ClockLine(Record):
    """A value of a clock, or of chance."""

    kind: Literal["clock"] = "clock"
    run: int
    turn: int
    name: str
    value: int | float | str = Field(default=0, union_mode="left_to_right")
    data: bytes | None = None
    """Bytes in the place of the value."""


class EndLine(Record):
    """A run is over, or waits for an answer."""

    kind: Literal["end"] = "end"
    run: int
    status: str
    """``done``, or the class of the error that ended it."""
    text: str = ""
    """The value, or the message, as it is shown."""
    value: ValueRecord | None = None
    """None where it cannot be kept."""


Entry: TypeAlias = AnswerLine | CallLine | ClockLine | EndLine
Line: TypeAlias = TapeLine | RunLine | MessageLine | Entry
