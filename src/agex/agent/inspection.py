"""Looking at agents and runs."""

from __future__ import annotations

from agex.agent.agent import Agent
from agex.agent.event import Event
from agex.agent.prompt import system_prompt
from agex.agent.run import Run
from agex.models.base import Profile
from agex.state import State

__all__ = ["events", "view"]


def events(source: Run[object] | State) -> list[Event]:
    """Return the events of a run, or of all tasks that used a state, in order."""
    if isinstance(source, Run | State):
        return list(source.events)
    raise TypeError(f"events() takes a Run or a state, not {source!r}; get a Run from task.run(...).")


def view(agent: Agent, *, profile: Profile | None = None) -> str:
    """Return the system prompt of an agent, as a model with this profile gets it."""
    return system_prompt(agent.registrations, agent.primer, agent.max_iterations, profile)
