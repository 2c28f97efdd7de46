"""Events of a task, as records that go to JSON and back.

Every event names its agent, task, run and turn. Values (inputs, results) stay the live
objects in memory; in JSON they are themselves where they are small plain data, else a
short description, so that an event is always bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)

from agex.contract import preview, short_repr
from agex.display import Code, Page, Part, Picture, Shown, Table, Text, Tone
from agex.models.actions import Action, EditFileAction, PythonAction, TerminalAction, WriteFileAction
from agex.models.base import Image, Usage
from agex.models.surrogates import encodable

__all__ = [
    "ActionEvent",
    "CancelledEvent",
    "ClarifyEvent",
    "ErrorEvent",
    "Event",
    "FailEvent",
    "FileEvent",
    "OutputEvent",
    "SuccessEvent",
    "SystemNoteEvent",
    "TaskStartEvent",
    "event_from_json",
    "plain_data",
]

PLAIN_ITEMS = 1_000
"""A value with more leaves than this is described, not written out, in JSON."""
PLAIN_CHARS = 20_000
"""Likewise for the characters of its strings: as much as one turn may show."""
PREVIEW_CHARS = 1_000
REPR_CHARS = 80
"""Of one field, in ``repr(event)``."""

_FENCED = re.compile(r"^(```|~~~).*?^\1[ \t]*$\n?", re.DOTALL | re.MULTILINE)
"""Fenced blocks of an answer without tool calls: they are shown as its actions."""


class _TooLarge(Exception):
    pass


class _Plain:
    """Copies plain data while it stays within its allowance."""

    def __init__(self) -> None:
        self.items = PLAIN_ITEMS
        self.chars = PLAIN_CHARS

    def copy(self, value: Any) -> Any:
        self._spend(1, 0)
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int and value.bit_length() < 64:
            return value
        if kind is float and math.isfinite(value):
            return value
        if kind is str:
            self._spend(0, len(value))
            return value
        if kind is list or kind is tuple:
            return [self.copy(item) for item in value]
        if kind is dict and all(type(key) is str for key in value):
            return {self.copy(key): self.copy(item) for key, item in value.items()}
        raise _TooLarge

    def _spend(self, items: int, chars: int) -> None:
        self.items -= items
        self.chars -= chars
        if self.items < 0 or self.chars < 0:
            raise _TooLarge


def plain_data(value: Any) -> Any:
    """Return a copy of small plain data, of lists, dicts with text keys and scalars.

    Raises:
        ValueError: it is something else, or larger than an event would write out.
    """
    try:
        return _Plain().copy(value)
    except (_TooLarge, RecursionError):
        raise ValueError(f"a {type(value).__name__} that is no small plain data") from None


def _json_value(value: Any) -> Any:
    try:
        return _Plain().copy(value)
    except (_TooLarge, RecursionError):
        return preview(value, PREVIEW_CHARS)


def _json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _json_value(value) for name, value in values.items()}


def _encodable(value: Any) -> Any:
    """Spell out lone surrogates, which JSON in UTF-8 cannot hold."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


Value: TypeAlias = Annotated[Any, PlainSerializer(_json_value, when_used="json")]
Values: TypeAlias = Annotated[dict[str, Any], PlainSerializer(_json_values, when_used="json")]


class _Brief:
    """A text that is its own `repr`."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class _Event(Shown, BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        arbitrary_types_allowed=True,
    )
    tone: ClassVar[Tone] = "plain"

    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))
    agent: str
    task: str
    run_id: str
    turn: int = 0
    """The turn it belongs to, from 1; 0 before the first."""
    commit_hash: str | None = None
    """The commit that contains this event and its effect; None where the state has no commits."""
    parent_hash: str | None = None
    """The commit before."""
    sample: int | None = None
    """Which of the samples of a call, from 1; None for a call that has none."""

    @model_serializer(mode="wrap")
    def _serialize(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if info.mode_is_json():
            fields = _encodable(fields)
        return fields

    def stamp(self, commit: str, parent: str | None) -> None:
        """Note the commit that holds this event: it is made after the event is told."""
        object.__setattr__(self, "commit_hash", commit)
        object.__setattr__(self, "parent_hash", parent)

    def summary(self) -> str:
        """Return the event as bounded text."""
        return ""

    def page(self) -> Page:
        """Return the event as a page for a reader."""
        where = f"{self.agent}.{self.task}"
        what = self.type.replace("task_", "").replace("_", " ")  # type: ignore[attr-defined]  # each kind has its own
        which = [f"sample {self.sample}"] if self.sample else []
        facts = [what, *which, *([f"turn {self.turn}"] if self.turn else []), *self._facts()]
        return Page(title=where, facts=facts, parts=tuple(self._parts()), tone=self._tone())

    def _facts(self) -> Iterator[str]:
        yield from ()

    def _tone(self) -> Tone:
        return self.tone

    def _parts(self) -> Iterator[Part]:
        if text := self.summary():
            yield Text(text=text)

    def __str__(self) -> str:
        return Shown.__str__(self)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        # pydantic would ask the values for their repr: what an agent returns may be of a class of its own.
        for name in type(self).model_fields:
            yield name, _Brief(short_repr(getattr(self, name), REPR_CHARS))


class TaskStartEvent(_Event):
    """A task was called."""

    type: Literal["task_start"] = "task_start"
    inputs: Values = Field(default_factory=dict)
    """The arguments by name."""
    python: str = "guarded"
    """The interpreter of the agent's code: ``"guarded"`` or ``"full"``."""

    def summary(self) -> str:
        return "\n".join(f"{name} = {preview(value, PREVIEW_CHARS)}" for name, value in self.inputs.items())

    def _parts(self) -> Iterator[Part]:
        if self.inputs:
            yield Table(rows=[(name, preview(value, PREVIEW_CHARS)) for name, value in self.inputs.items()])


class ActionEvent(_Event):
    """The model answered."""

    type: Literal["action"] = "action"
    actions: tuple[Action, ...] = ()
    """The actions it asked for, in order."""
    text: str = ""
    """The text beside the actions."""
    truncated: bool = False
    """The answer was cut, so nothing of it is executed."""
    usage: Usage = Field(default_factory=Usage)
    model: str = ""
    """Which model it was: ``"provider:name"``."""
    seconds: float = 0.0
    """How long the model took."""

    def summary(self) -> str:
        parts = [self.text] if self.text and not self.actions else []
        parts.extend("\n".join(str(v) for name, v in action if name != "kind") for action in self.actions)
        return "\n\n".join(parts)

    def _facts(self) -> Iterator[str]:
        yield f"{self.usage.input_tokens}+{self.usage.output_tokens} tokens"
        yield f"{self.seconds:.1f} s"
        if self.truncated:
            yield "cut, and not executed"

    def _parts(self) -> Iterator[Part]:
        said = _FENCED.sub("", self.text).strip() if self.actions else self.text
        if said:
            yield Text(text=said)
        for action in self.actions:
            yield from _action_parts(action)


class OutputEvent(_Event):
    """The effect of an action, as the model is shown it."""

    type: Literal["output"] = "output"
    text: str = ""
    images: tuple[Image, ...] = ()
    error: bool = False
    """The action raised, or could not be executed."""
    seconds: float = 0.0
    """How long the action took."""

    def summary(self) -> str:
        return self.text

    def _facts(self) -> Iterator[str]:
        yield f"{self.seconds:.2f} s"

    def _tone(self) -> Tone:
        return "bad" if self.error else "plain"

    def _parts(self) -> Iterator[Part]:
        if self.text:
            yield Text(text=self.text, bad=self.error)
        for image in self.images:
            yield Picture(data=image.data, media_type=image.media_type)


class SuccessEvent(_Event):
    """The task ended with a value."""

    type: Literal["success"] = "success"
    tone: ClassVar[Tone] = "good"
    result: Value = None

    def summary(self) -> str:
        return preview(self.result, PREVIEW_CHARS)

    def _parts(self) -> Iterator[Part]:
        from agex.agent.rendering.value_view import exhibits

        yield from exhibits(self.result)


def _action_parts(action: Action) -> Iterator[Part]:
    match action:
        case PythonAction():
            yield Code(text=action.code)
        case TerminalAction():
            yield Code(text=action.commands, label="terminal", language="bash")
        case WriteFileAction():
            yield Code(text=action.content, label=f"write {action.path}", language=_language(action.path))
        case EditFileAction():
            yield Code(
                text=action.search, label=f"edit {action.path}: replace", language=_language(action.path)
            )
            yield Code(text=action.replace, label="by", language=_language(action.path))


def _language(path: str) -> str:
    return "python" if path.endswith(".py") else "text"


class _Said(_Event):
    message: str

    def summary(self) -> str:
        return self.message


class FailEvent(_Said):
    """The agent gave up."""

    type: Literal["fail"] = "fail"
    tone: ClassVar[Tone] = "bad"


class ClarifyEvent(_Said):
    """The agent needs an answer before it can go on."""

    type: Literal["clarify"] = "clarify"
    tone: ClassVar[Tone] = "asking"


class CancelledEvent(_Said):
    """The host cancelled the task."""

    type: Literal["cancelled"] = "cancelled"
    tone: ClassVar[Tone] = "asking"


class ErrorEvent(_Said):
    """Something outside guest code went wrong: a model request, a limit, the setup, a host function."""

    type: Literal["error"] = "error"
    tone: ClassVar[Tone] = "bad"
    error: str
    """The name of the error's class."""
    recoverable: bool = False
    """Whether the task goes on."""
    traceback: str = ""
    """The traceback of an error in a host function."""

    def _facts(self) -> Iterator[str]:
        yield self.error


HANDED_OVER = "The task goes on with "
"""How the note begins that another model of a list is asked from now on."""
ANSWERED = "The caller answered: "
"""How the note begins that holds the answer to a task's question."""


class SystemNoteEvent(_Said):
    """agex did something on its own account."""

    type: Literal["system_note"] = "system_note"


class FileEvent(_Event):
    """Files of the workspace changed."""

    type: Literal["file"] = "file"
    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def summary(self) -> str:
        marked = (("+", self.added), ("~", self.modified), ("-", self.removed))
        return "\n".join(f"{mark} {path}" for mark, paths in marked for path in paths)


Event: TypeAlias = Annotated[
    TaskStartEvent
    | ActionEvent
    | OutputEvent
    | SuccessEvent
    | FailEvent
    | ClarifyEvent
    | CancelledEvent
    | ErrorEvent
    | SystemNoteEvent
    | FileEvent,
    Field(discriminator="type"),
]
"""Any of them."""

_adapter: TypeAdapter[Event] = TypeAdapter(Event)


def event_from_json(text: str | bytes) -> Event:
    """Read an event that ``event.model_dump_json()`` wrote.

    Raises:
        pydantic.ValidationError: the text is no such event.
    """
    return _adapter.validate_json(text)
