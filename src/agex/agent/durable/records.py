"""Records of a run as they are written into a state: checked data, which is not trusted when it is read.

::

    RUN                     RunRecord, and the value once it is done
    RUN/means               MeansRecord
    RUN/inputs              the inputs by name
    RUN/opening             the messages that the conversation began with
    RUN/turn                TurnRecord: the turn that is not over
    RUN/exchange/0001       ExchangeRecord: a turn that is over, as the model is shown it
    RUN/call/0001.01.0001   CallRecord with arguments and result: turn, action, number

A store may come from a stranger: the metadata are JSON that a schema checks, values go through the codec
of the state's variables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agex.agent.loop.loop import Clarification, Failure, Observation, Progress
from agex.errors import StateCorrupt
from agex.models.actions import Action
from agex.models.base import Image, Message, Reply, Usage
from agex.models.surrogates import encodable

__all__ = [
    "CallRecord",
    "CallState",
    "ExchangeRecord",
    "KnownCall",
    "MeansRecord",
    "MessageRecord",
    "OpeningRecord",
    "RunRecord",
    "Status",
    "TurnRecord",
    "known_call",
    "read_record",
    "written",
]

Status: TypeAlias = Literal["open", "suspended", "asking", "done", "failed"]
CallState: TypeAlias = Literal["begun", "returned", "raised", "asked", "approved", "rejected"]
M = TypeVar("M", bound="Record")


class Record(BaseModel):
    """Metadata of one entry."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        ser_json_inf_nan="constants",
    )


class UsageRecord(Record):
    """The usage until now."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0

    @classmethod
    def of(cls, usage: Usage) -> UsageRecord:
        """Return the record of a usage."""
        return cls(
            requests=usage.requests,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
        )

    def usage(self) -> Usage:
        """Return the usage."""
        return Usage(**self.model_dump())


class RunRecord(Record):
    """A run, but for its values."""

    run_id: str
    agent: str
    task: str
    status: Status = "open"
    idle: bool = False
    """Whether it is open and nobody carries it on: it was enqueued or approved, or no model answered."""
    branch: str = ""
    """The branch that it is carried on with: a fork has the entries of its runs, too."""
    started: float
    """Seconds since the epoch."""
    turn: int = 0
    last_turn: int
    """The last turn that it may take."""
    used: UsageRecord = UsageRecord()
    seconds: float = Field(default=0.0, ge=0.0, lt=math.inf)
    setup_shown: str | None = None
    """The output of the setup code, once it was run."""
    rebound: tuple[str, ...] = ()
    """Inputs whose names the agent's code bound anew: they are variables of the state."""
    unkept: dict[str, str] = {}
    """Inputs that could not be kept, each with its type and the reason."""
    waits: int = 0
    """How often it has stopped for an answer."""
    attempts: int = Field(default=0, ge=0)
    """How often it was taken up since it last came to something new."""
    call: str = ""
    """The call that waits for approval, as its key."""
    question: str = ""
    answer: str = ""
    """To its question, from somebody without its program; it goes on with that."""
    message: str = ""
    """Why it failed."""


class ImageRecord(Record):
    """A picture."""

    data: bytes
    media_type: str


class ReplyRecord(Record):
    """An answer of a model, without the provider's own object."""

    text: str = ""
    actions: tuple[Action, ...] = ()
    notes: tuple[str, ...] = ()
    truncated: bool = False
    usage: UsageRecord = UsageRecord()

    @classmethod
    def of(cls, reply: Reply) -> ReplyRecord:
        """Return the record of a reply."""
        return cls(
            text=reply.text,
            actions=reply.actions,
            notes=reply.notes,
            truncated=reply.truncated,
            usage=UsageRecord.of(reply.usage),
        )

    def reply(self) -> Reply:
        """Return the reply."""
        return Reply(
            text=self.text,
            actions=self.actions,
            notes=self.notes,
            truncated=self.truncated,
            usage=self.usage.usage(),
        )


class ObservationRecord(Record):
    """The effect of an action; of one that ended the task, only that it asked or gave up."""

    text: str = ""
    images: tuple[ImageRecord, ...] = ()
    failed: bool = False
    brief: str = ""
    asked: str | None = None
    gave_up: str | None = None
    files: dict[str, tuple[str, ...]] = {}
    recap: str = ""
    seconds: float = 0.0

    @classmethod
    def of(cls, seen: Observation) -> ObservationRecord:
        """Return the record of an observation."""
        ending = seen.ending
        return cls(
            text=encodable(seen.text),
            images=_images(seen.images),
            failed=seen.failed,
            brief=encodable(seen.brief),
            asked=ending.message if isinstance(ending, Clarification) else None,
            gave_up=ending.message if isinstance(ending, Failure) else None,
            files={kind: tuple(map(encodable, paths)) for kind, paths in seen.files.items()},
            recap=encodable(seen.recap),
            seconds=seen.seconds,
        )

    def observation(self) -> Observation:
        """Return the observation."""
        asked = None if self.asked is None else Clarification(self.asked)
        gave_up = None if self.gave_up is None else Failure(self.gave_up)
        return Observation(
            text=self.text,
            images=tuple(Image(data=one.data, media_type=one.media_type) for one in self.images),
            failed=self.failed,
            brief=self.brief,
            ending=asked or gave_up,
            files=self.files,
            recap=self.recap,
            seconds=self.seconds,
        )


class TurnRecord(Record):
    """A turn that is not over."""

    turn: int
    reply: ReplyRecord
    seen: tuple[ObservationRecord, ...] = ()

    @classmethod
    def of(cls, progress: Progress) -> TurnRecord:
        """Return the record of a turn."""
        return cls(
            turn=progress.turn,
            reply=ReplyRecord.of(progress.reply),
            seen=tuple(map(ObservationRecord.of, progress.seen)),
        )

    def progress(self) -> Progress:
        """Return the turn."""
        return Progress(
            turn=self.turn,
            reply=self.reply.reply(),
            seen=tuple(one.observation() for one in self.seen),
        )


class ExchangeRecord(Record):
    """A turn that is over."""

    reply: ReplyRecord
    shown: ObservationRecord
    answer: str | None = None
    """The caller's answer to its question."""


class MessageRecord(Record):
    """A message without a reply."""

    role: Literal["system", "user", "assistant"]
    content: str
    images: tuple[ImageRecord, ...] = ()

    @classmethod
    def of(cls, message: Message) -> MessageRecord:
        """Return the record of a message."""
        return cls(role=message.role, content=encodable(message.content), images=_images(message.images))

    def message(self) -> Message:
        """Return the message."""
        images = tuple(Image(data=one.data, media_type=one.media_type) for one in self.images)
        return Message(role=self.role, content=self.content, images=images)


class MeansRecord(Record):
    """The things that the agent's code may use, and where it runs, each by its name."""

    means: dict[str, str]


class OpeningRecord(Record):
    """The messages that a conversation began with."""

    messages: tuple[MessageRecord, ...]


class CallRecord(Record):
    """A call of an external function."""

    key: str
    name: str
    turn: int
    state: CallState
    text: str = ""
    """The call as it is shown."""
    line: int | None = None
    source: str = ""
    reason: str = ""
    """Why it was rejected; or why its result could not be kept."""
    out: str = ""
    """The text that it printed."""


def written(record: Record, **values: Any) -> dict[str, Any]:
    """Return an entry: a record, and the values beside it."""
    return {"record": record.model_dump_json(), **values}


def read_record(kind: type[M], entry: Any, key: str) -> M:
    """Return the record of an entry.

    Raises:
        StateCorrupt: it is none.
    """
    text = entry.get("record") if type(entry) is dict else None
    if type(text) is not str:
        raise StateCorrupt(f"The entry {key!r} is no record of a run")
    try:
        return kind.model_validate_json(text)
    except (ValidationError, ValueError) as error:
        raise StateCorrupt(f"The entry {key!r} is no {kind.__name__}: {error}") from error


@dataclass(frozen=True)
class KnownCall:
    """A call as it is recorded."""

    record: CallRecord
    values: Mapping[str, Any]
    """``args``, ``kwargs``, and ``result``, ``error`` or ``approved`` where there is one."""


def known_call(entry: Any, key: str) -> tuple[str, KnownCall]:
    """Return the key and the record of a call from its entry.

    Raises:
        StateCorrupt: it is none.
    """
    record = read_record(CallRecord, entry, key)
    if not key.endswith(f"/call/{record.key}"):
        raise StateCorrupt(f"The entry {key!r} says that it is of call {record.key!r}")
    if (
        record.state in ("returned", "raised")
        and not record.reason
        and not {"result", "error"} & entry.keys()
    ):
        raise StateCorrupt(f"The entry {key!r} has no result")
    return record.key, KnownCall(record, {name: value for name, value in entry.items() if name != "record"})


def _images(images: tuple[Image, ...]) -> tuple[ImageRecord, ...]:
    return tuple(ImageRecord(data=one.data, media_type=one.media_type) for one in images)
