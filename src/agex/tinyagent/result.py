"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from agex.models.base import Usage
from agex.tinyagent.signals import Signal
from agex.tinyagent.steps import ActionStep
from agex.tinyagent.trust import TrustLevel

if TYPE_CHECKING:
    from agex.errors import AgexError
    from agex.sandbox.runtime.result import Enforcement

__all__ = ["FinalAnswer", "RunResult"]


@dataclass(frozen=True)
class FinalAnswer:
    """The argument of the agent's ``final_answer``."""

    value: Any
    """The object itself."""
    text: str = ""
    """Its ``str()``, made inside the limits of the code."""
    source: Literal["normal", "final_attempt"] = "normal"
    timestamp: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """``verified_by``, where the agent said how it checked the answer."""

    @property
    def verified_by(self) -> Any:
        """How the agent checked the answer, in its own words; None if it did not say."""
        return self.metadata.get("verified_by")


@dataclass(frozen=True)
class RunResult:
    """The record of one run."""

    output: str
    """The text of the answer; empty without one."""
    final_answer: FinalAnswer | None = None
    state: Literal["completed", "step_limit_reached", "error"] = "completed"
    steps_taken: int = 0
    duration_seconds: float = 0.0
    error: AgexError | None = None
    """The reason that there is no answer."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    signals: tuple[Signal, ...] = ()
    """The agent's signals about its reasoning, in order."""
    steps: tuple[ActionStep, ...] = ()
    """All steps, those that were pruned from the conversation included."""
    usage: Usage = field(default_factory=Usage)
    """Tokens and money."""
    trust_level: TrustLevel = TrustLevel.LOCAL
    """Where the code was to run."""
    enforcement: Enforcement | None = None
    """The limits and isolation in force while it ran; None if nothing was executed."""
