"""What happens in a task, as records that go to JSON and back.

Every event names its agent, task, run and turn. Values (inputs, results) stay the live
objects in memory; in JSON they are themselves where they are small plain data, else a
short description, so that an event is always bounded.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
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

from agex.contract import preview
from agex.models.actions import Action
from agex.models.base import Image, Usage

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
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


Value: TypeAlias = Annotated[Any, PlainSerializer(_json_value, when_used="json")]
Values: TypeAlias = Annotated[dict[str, Any], PlainSerializer(_json_values, when_used="json")]


class _Event(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        arbitrary_types_allowed=True,
    )
    color: ClassVar[str] = "#666"

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
        """Return what happened, as bounded text."""
        return ""

    def _repr_html_(self) -> str:
        head = html.escape(f"{self.agent} · {self.task} · turn {self.turn} · {type(self).__name__}")
        body = html.escape(self.summary())
        return (
            f'<div style="border-left:3px solid {self.color};padding-left:8px;margin:4px 0">'
            f'<div style="color:{self.color}">{head}</div><pre style="margin:0">{body}</pre></div>'
        )


class TaskStartEvent(_Event):
    """A task was called."""

    type: Literal["task_start"] = "task_start"
    color: ClassVar[str] = "#246"
    inputs: Values = Field(default_factory=dict)
    """The arguments by name."""

    def summary(self) -> str:
        return "\n".join(f"{name} = {preview(value, PREVIEW_CHARS)}" for name, value in self.inputs.items())


class ActionEvent(_Event):
    """The model answered."""

    type: Literal["action"] = "action"
    color: ClassVar[str] = "#264"
    actions: tuple[Action, ...] = ()
    """What it wants done, in order."""
    text: str = ""
    """What it said beside the actions."""
    truncated: bool = False
    """The answer was cut, so nothing of it is executed."""
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0
    """How long the model took."""

    def summary(self) -> str:
        parts = [self.text] if self.text and not self.actions else []
        parts.extend("\n".join(str(v) for name, v in action if name != "kind") for action in self.actions)
        return "\n\n".join(parts)


class OutputEvent(_Event):
    """What the model is shown of an action's effect."""

    type: Literal["output"] = "output"
    text: str = ""
    images: tuple[Image, ...] = ()
    error: bool = False
    """The action raised, or could not be executed."""
    seconds: float = 0.0
    """How long the action took."""

    def summary(self) -> str:
        return self.text


class SuccessEvent(_Event):
    """The task ended with a value."""

    type: Literal["success"] = "success"
    color: ClassVar[str] = "#080"
    result: Value = None

    def summary(self) -> str:
        return preview(self.result, PREVIEW_CHARS)


class _Said(_Event):
    message: str

    def summary(self) -> str:
        return self.message


class FailEvent(_Said):
    """The agent gave up."""

    type: Literal["fail"] = "fail"
    color: ClassVar[str] = "#a00"


class ClarifyEvent(_Said):
    """The agent needs an answer before it can go on."""

    type: Literal["clarify"] = "clarify"
    color: ClassVar[str] = "#a60"


class CancelledEvent(_Said):
    """The host cancelled the task."""

    type: Literal["cancelled"] = "cancelled"
    color: ClassVar[str] = "#a60"


class ErrorEvent(_Said):
    """Something outside the agent's code went wrong: a model request, a limit, the setup."""

    type: Literal["error"] = "error"
    color: ClassVar[str] = "#a00"
    error: str
    """The name of the error's class."""
    recoverable: bool = False
    """Whether the task goes on."""


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
