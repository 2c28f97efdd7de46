"""The steps of a conversation, as records, and as the messages that a model is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from agex.models.base import Reply

__all__ = ["ActionStep", "ScratchpadStep", "Step", "SystemPromptStep", "TaskStep"]

ChatMessage: TypeAlias = dict[str, str]
"""``{"role": ..., "content": ...}``, as chat interfaces have it."""


@dataclass(kw_only=True)
class Step:
    """One step. A step of no particular kind has nothing to say to a model."""

    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)
    step_number: int = 0
    """Given by the `MemoryManager` it is added to; never given twice."""

    def to_messages(self) -> list[ChatMessage]:
        """Return the messages of this step, in order."""
        return []


@dataclass(kw_only=True)
class SystemPromptStep(Step):
    """The instructions."""

    content: str = ""

    def to_messages(self) -> list[ChatMessage]:
        return [{"role": "system", "content": self.content}]


@dataclass(kw_only=True)
class TaskStep(Step):
    """The task in the user's words."""

    task: str = ""

    def to_messages(self) -> list[ChatMessage]:
        return [{"role": "user", "content": self.task}]


@dataclass(kw_only=True)
class ActionStep(Step):
    """The model's action in one turn, and its results."""

    thought: str = ""
    """The model's text beside the code."""
    code: str = ""
    """The code to execute."""
    output: str = ""
    """The printed text, and the value of a last expression."""
    observation: str = ""
    """The part that the model was shown, where nothing failed."""
    error: str = ""
    """The part that the model was shown after a failure: the output so far and the traceback."""
    is_final: bool = False
    """Whether it ended the task with an answer."""
    duration_seconds: float = 0.0
    """How long the code ran."""
    tool_name: str = ""
    """For agents that call one tool a step."""
    tool_args: Mapping[str, Any] = field(default_factory=dict)
    raw_llm_response: str = ""
    """The model's answer as it was."""
    reply: Reply | None = field(default=None, repr=False, compare=False)
    """The same with what a provider needs to be sent its own words back."""

    def to_messages(self) -> list[ChatMessage]:
        seen = self.error or f"Observation: {self.observation}"
        answer = self.raw_llm_response or "(no text)"
        return [{"role": "assistant", "content": answer}, {"role": "user", "content": seen}]

    def truncate(self, max_length: int = 500) -> ActionStep:
        """Return this step with what was seen of it cut to *max_length* characters."""
        return replace(
            self, observation=_cut(self.observation, max_length), error=_cut(self.error, max_length)
        )


@dataclass(kw_only=True)
class ScratchpadStep(Step):
    """A note the model made."""

    content: str = ""
    raw_llm_response: str = ""

    def to_messages(self) -> list[ChatMessage]:
        return [
            {"role": "assistant", "content": self.raw_llm_response or "(no text)"},
            {"role": "user", "content": f"Scratchpad noted: {self.content}"},
        ]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit} characters cut)"
