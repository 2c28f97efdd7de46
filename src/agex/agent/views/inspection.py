"""Looking at agents, runs and states."""

from __future__ import annotations

from typing import Literal, TypeAlias, overload

from agex.agent.agent import Agent
from agex.agent.call.events import Event
from agex.agent.prompt.prompt import system_prompt
from agex.agent.task.run import Run
from agex.contract import preview
from agex.errors import UnpicklableVariableError
from agex.models.base import Profile
from agex.state import State
from agex.state.base import Past

__all__ = ["events", "view"]

Focus: TypeAlias = Literal["recent", "full", "tokens"]

SHOWN_CHARS = 2_000
"""Of each variable."""
CHARS_A_TOKEN = 4
"""Estimated characters of code and data in a token."""


def events(source: Run[object] | State | Past) -> list[Event]:
    """Return the events of a run, or of all tasks that used a state, in order."""
    if isinstance(source, Run | State | Past):
        return list(source.events)
    raise TypeError(
        f"events() takes a Run, a state or a checkout, not {source!r}; get a Run from task.run(...)."
    )


@overload
def view(subject: Agent, *, profile: Profile | None = None) -> str: ...
@overload
def view(subject: State | Past, *, focus: Focus = "recent") -> str: ...
def view(subject: Agent | State | Past, *, profile: Profile | None = None, focus: Focus = "recent") -> str:
    """Return an agent or a state as text.

    Args:
        subject: an agent: its system prompt. A state or a checkout of one: its variables.
        profile: of the model whose prompt is shown.
        focus: ``recent`` shows the variables that the last commit changed, ``full`` all of them and the
            cache, ``tokens`` how many tokens each would take, as shown, by a rule of thumb.
    """
    if isinstance(subject, Agent):
        registrations, turns = subject.registrations, subject.max_iterations
        return system_prompt(registrations, subject.primer, turns, profile, python=subject.python)
    if not isinstance(subject, State | Past):
        raise TypeError(f"view() takes an agent, a state or a checkout, not {subject!r}.")
    if focus not in {"recent", "full", "tokens"}:
        raise ValueError(f"focus={focus!r} is none of: recent, full, tokens.")
    names = subject.recent() if focus == "recent" else list(subject)
    shown = {name: _shown(subject, name) for name in names if name in subject}
    if focus != "recent" and subject.cache:
        shown["cache"] = preview(dict(subject.cache), SHOWN_CHARS)
    if focus == "tokens":
        shown = {name: str(-(-len(text) // CHARS_A_TOKEN)) for name, text in shown.items()}
    return "\n".join(f"{name} = {text}" for name, text in shown.items())


def _shown(subject: State | Past, name: str) -> str:
    try:
        return preview(subject.sketch(name), SHOWN_CHARS)
    except UnpicklableVariableError as error:
        return f"({str(error).partition(chr(10))[0]})"
