"""Options that a caller may add to one call of a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from agex.agent.call.budget import Budget
from agex.agent.call.call import OnApproval, OnEvent, OnToken
from agex.agent.call.terms import Choose, require_samples
from agex.agent.registration import is_async
from agex.errors import DefinitionError
from agex.state import State

__all__ = ["UNSET", "CallOptions"]


class Unset(Enum):
    """A sentinel that is the same in every process."""

    UNSET = 0

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = Unset.UNSET
"""Not given; None is something else."""


_NAMES = ("state", "on_event", "on_token", "budget", "on_approval", "samples", "choose")


@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """Options of one call."""

    state: State | None = UNSET
    """Where variables live on; None for nowhere; the agent's own if not given."""
    on_event: OnEvent | None = None
    on_token: OnToken | None = None
    budget: Budget | None = None
    """Replaces the budget of the agent."""
    on_approval: OnApproval | None = None
    """Answers in place whether a call that needs approval may be made."""
    samples: int = UNSET
    """Replaces the task's own number of runs side by side."""
    choose: Choose = UNSET
    """Replaces the task's own choice among them."""

    def taken_from(
        self, kwargs: Mapping[str, Any], parameters: Collection[str] = ()
    ) -> tuple[CallOptions, dict[str, Any]]:
        """Return these options with those in *kwargs* set, and the other keywords.

        A keyword that is one of the task's own *parameters* is its argument.
        """
        own = {name: kwargs[name] for name in _NAMES if name in kwargs and name not in parameters}
        rest = {name: value for name, value in kwargs.items() if name not in own}
        return replace(self, **own), rest

    def require_usable(self, *, in_async_task: bool) -> None:
        """Refuse options that could only be dropped silently later.

        Raises:
            DefinitionError: with the right form.
        """
        _require(
            "state",
            self.state,
            (State, type(None), type(UNSET)),
            "state=Live(), state=Versioned(...) or None",
        )
        require_samples(
            1 if self.samples is UNSET else self.samples, "first" if self.choose is UNSET else self.choose
        )
        _require("budget", self.budget, (Budget, type(None)), "budget=Budget(tokens=...)")
        handlers = (
            ("on_event", self.on_event),
            ("on_token", self.on_token),
            ("on_approval", self.on_approval),
        )
        for name, handler in handlers:
            if handler is None:
                continue
            if not callable(handler):
                raise DefinitionError(f"{name}={handler!r} is not callable; give a function of one argument.")
            if is_async(handler) and not (in_async_task and name != "on_token"):
                where = "on_token is" if name == "on_token" else f"the {name} of a sync task is"
                raise DefinitionError(
                    f"{name}={_name(handler)} is async, but {where} called synchronously; use def."
                )


def _require(name: str, value: object, kinds: tuple[type, ...], right: str) -> None:
    if not isinstance(value, kinds):
        raise DefinitionError(f"{name}={value!r} is not possible; give {right}.")


def _name(handler: Callable[..., Any]) -> str:
    return getattr(inspect.unwrap(handler), "__name__", type(handler).__name__)
