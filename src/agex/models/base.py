"""The interface of a model: one request in, one reply out.

The agent's loop builds a :class:`Request`; a :class:`Model` answers it with a
:class:`Reply`. Nothing here knows a provider. A model that can be asked without
blocking overrides :meth:`Model.aask`; every other one is asked in a thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agex._interpreter.threads import in_thread
from agex.models.actions import Action

__all__ = ["Image", "Message", "Model", "ModelError", "OnText", "Profile", "Reply", "Request", "Usage"]

OnText: TypeAlias = Callable[[str], None]
"""Called with each piece of text as the model produces it."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A picture shown to the model."""

    data: bytes
    """The encoded picture."""
    media_type: str = "image/png"
    """Its MIME type."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The cost of requests. Adds up with ``+``."""

    requests: int = 0
    """Requests sent, failed ones included."""
    input_tokens: int = 0
    """Tokens read, cached ones included."""
    output_tokens: int = 0
    """Tokens written."""
    cost: float | None = 0.0
    """US dollars; None as soon as one price is unknown. A local model costs 0."""

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=cost,
        )


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of a conversation.

    An assistant message carries the reply it came from, so that a provider with tool
    calls can be sent its own words back; the user message after it answers those calls.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    """The text; for the assistant, as the model wrote it."""
    images: tuple[Image, ...] = ()
    reply: Reply | None = None
    """For an assistant message, the reply it repeats."""
    results: tuple[str, ...] = ()
    """For the answer to a reply of several actions, the result of each, in order; `content` has them all."""
    note: str = ""
    """A remark after the content, such as the number of the turn."""

    @property
    def text(self) -> str:
        """The content with the note: what a model is sent."""
        return "\n\n".join(part for part in (self.content, self.note) if part)

    def answers(self, count: int) -> list[str]:
        """Return the answers to *count* calls: each with its own result, or the first one with all of it."""
        if len(self.results) != count:
            return [self.text, *["See the first result."] * (count - 1)]
        *first, last = self.results
        return [*first, "\n\n".join(part for part in (last, self.note) if part)]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything a model gets for one turn. ``str(request)`` is all the text of it."""

    messages: tuple[Message, ...]
    actions: tuple[str, ...] = ("python_action",)
    """Names of the actions that may be taken: offered as tools where there are tools."""
    max_actions: int = 32
    """How many actions of the reply are read."""
    attempt: int = 0
    """How many turns of this task went before: a sampling model varies by it."""
    sample: int = 0
    """Which sample of a task call asks, from 1; 0 for a call that has none. Drawing varies by it, too."""
    prefill: str = ""
    """How the answer begins. A model of style ``completion`` goes on from here and its reply's
    text includes it; others ignore it."""

    def __str__(self) -> str:
        return "\n\n".join(f"[{m.role}]\n{m.text}" for m in self.messages)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A model's answer."""

    text: str = ""
    """The answer outside tool calls; for a model without tools, all of it."""
    actions: tuple[Action, ...] = ()
    """The actions asked for, in order. Empty when nothing could be read as an action."""
    notes: tuple[str, ...] = ()
    """Requests that are refused, each with its reason, in words for the model."""
    truncated: bool = False
    """The output limit cut the answer: no action of it may be executed."""
    usage: Usage = field(default_factory=Usage)
    raw: object = None
    """The provider's own reply object, to be sent back unchanged."""


class ModelError(Exception):
    """A request failed. Internal to the loop, which retries or raises ``LLMFail``.

    Attributes:
        retryable: whether the same request may succeed later.
        retry_after: seconds the provider asked to wait, if it said.
    """

    def __init__(self, message: str, *, retryable: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The form of prompt that suits a model."""

    style: Literal["full", "completion"] = "full"
    """``completion``: a small model that is best at completing one function."""
    tools: bool = True
    """Takes actions as tool calls; otherwise as fenced blocks."""
    images: bool = False
    """Can look at pictures."""


class Model(ABC):
    """Something that can be asked. Safe to share between threads."""

    name: str
    """The model, e.g. ``"gpt-5"``."""
    provider: str
    """Who runs it, e.g. ``"openai"``."""
    profile: Profile = Profile()
    runs_on_any_loop: bool = False
    """Whether :meth:`aask` may stand in for :meth:`ask` on another event loop, where it can be given up."""

    @property
    def full_name(self) -> str:
        """The provider and the model, e.g. ``"openai:gpt-5"``."""
        return f"{self.provider}:{self.name}"

    @abstractmethod
    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Answer a request.

        Args:
            request: the conversation so far.
            on_text: called with each piece of the answer while it is produced.

        Raises:
            ModelError: the request failed.
        """

    async def aask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Like :meth:`ask`, without blocking the event loop."""
        return await in_thread(lambda: self.ask(request, on_text), "agex request")
