"""The conversation as a list of steps, and ways to keep it short."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from agex.errors import DefinitionError
from agex.tinyagent.steps import ActionStep, ChatMessage, Step, SystemPromptStep, TaskStep

__all__ = ["MemoryManager", "PruneStrategy", "keep_last_n_steps", "no_pruning", "prune_old_observations"]

S = TypeVar("S", bound=Step)

PruneStrategy: TypeAlias = Callable[[list[Step]], list[Step]]
"""Given the steps, returns those to keep; a step it changes is a new one."""


class MemoryManager:
    """The steps of a conversation, in order. A number is never given to a second step.

    Args:
        steps: to begin with; they are numbered as if they were added.
    """

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.steps: list[Step] = []
        self._next = 0
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> None:
        """Append a step and give it its number."""
        step.step_number = self._next
        self._next += 1
        self.steps.append(step)

    def to_messages(self) -> list[ChatMessage]:
        """Return the messages of all steps, in order."""
        return [message for step in self.steps for message in step.to_messages()]

    def prune(self, strategy: PruneStrategy) -> None:
        """Keep the steps that *strategy* keeps, with their numbers."""
        self.steps = list(strategy(list(self.steps)))

    def get_steps_by_type(self, kind: type[S]) -> list[S]:
        """Return the steps of one kind."""
        return [step for step in self.steps if isinstance(step, kind)]

    def clear(self) -> None:
        """Forget all steps, and begin to count anew."""
        self.steps = []
        self._next = 0

    @property
    def action_count(self) -> int:
        """How many of the steps are actions."""
        return len(self.get_steps_by_type(ActionStep))


def keep_last_n_steps(n: int) -> PruneStrategy:
    """Keep the instructions, the task and the last *n* other steps."""
    _require_count(n)

    def strategy(steps: list[Step]) -> list[Step]:
        others = [step for step in steps if not _is_fixed(step)]
        kept = {id(step) for step in others[-n:]} if n else set()
        return [step for step in steps if _is_fixed(step) or id(step) in kept]

    return strategy


def prune_old_observations(keep_last_n: int = 3, max_length: int = 100) -> PruneStrategy:
    """Cut what was seen of all but the last *keep_last_n* actions to *max_length* characters."""
    _require_count(keep_last_n)

    def strategy(steps: list[Step]) -> list[Step]:
        actions = [step for step in steps if isinstance(step, ActionStep)]
        old = {id(step) for step in actions[: max(len(actions) - keep_last_n, 0)]}
        return [
            step.truncate(max_length) if isinstance(step, ActionStep) and id(step) in old else step
            for step in steps
        ]

    return strategy


def no_pruning() -> PruneStrategy:
    """Keep everything."""
    return list


def _is_fixed(step: Step) -> bool:
    return isinstance(step, SystemPromptStep | TaskStep)


def _require_count(n: int) -> None:
    if n < 0:
        raise DefinitionError(f"{n} steps cannot be kept; give 0 or more.")
