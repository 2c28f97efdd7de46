"""The record of one task call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from agex.agent.event import Event
from agex.models.base import Usage

__all__ = ["Run"]

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Run(Generic[R]):
    """What one task call gave and what it took. ``ok`` says whether it has a value.

    ``task.run(...)`` returns one; a task that ends without a value raises an error that
    carries one, with every event up to the end.
    """

    run_id: str
    """Marks the events of this call; those of the tasks it called carry their own."""
    agent: str
    task: str
    value: R | None = None
    """The checked result; None for a run without one."""
    code: str | None = field(default=None, repr=False)
    """The source of the task's own function with what it needs, where defining it was the end."""
    error: BaseException | None = None
    """Why there is no value."""
    events: tuple[Event, ...] = field(default=(), repr=False)
    """In the order they happened, those of called tasks included."""
    usage: Usage = field(default_factory=Usage)
    """Of this call and of all tasks it called."""
    state: Any = field(default=None, repr=False)
    """The state it ran with, or None."""
    commit: str | None = None
    """The last commit of this run, where the state has commits."""
    duration: float = 0.0
    """Wall seconds."""

    @property
    def ok(self) -> bool:
        """Whether the task ended with a value."""
        return self.error is None

    @property
    def cost(self) -> float | None:
        """US dollars; None when a price is unknown."""
        return self.usage.cost

    @property
    def turns(self) -> int:
        """How many turns the task's own model took."""
        return max((event.turn for event in self.events if event.run_id == self.run_id), default=0)
