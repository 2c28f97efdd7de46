"""The page that shows an agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agex.agent.registration import Registration
from agex.display import Page, Part, Table, Text, cut

if TYPE_CHECKING:
    from agex.agent.base.agent_base import AgentBase

__all__ = ["agent_page"]

DOC_CHARS = 200
"""Of what a registration is for."""
PRIMER_CHARS = 2_000


def agent_page(agent: AgentBase) -> Page:
    """Show an agent: what it thinks with, its limits, and what its code may use."""
    return Page(title=agent.name, facts=("agent",), parts=tuple(_agent_parts(agent)))


def _agent_parts(agent: AgentBase) -> Iterator[Part]:
    yield Table(rows=tuple(_settings(agent)))
    if agent.primer:
        yield Text(text=cut(agent.primer, PRIMER_CHARS), label="primer")
    if agent.registrations:
        yield Table(
            head=("name", "kind", "shown", "what for"),
            rows=[_registration(one) for one in agent.registrations],
            label="its code may use",
        )


def _settings(agent: AgentBase) -> Iterator[tuple[str, str]]:
    yield "model", _model(agent.model)
    where = "in this process" if agent.isolation == "none" else f"at level {agent.isolation!r}"
    yield "code runs", f"{where}, {agent.python} Python"
    yield "state", "none" if agent.state is None else repr(agent.state)
    yield "limits", ", ".join(_limits(agent))
    if agent.budget is not None:
        yield "budget", ", ".join(_budget(agent))


def _model(model: object) -> str:
    """Name a model; what else is in it may be a key."""
    if model is None:
        return "what the environment offers"
    if isinstance(model, list | tuple):
        return ", then ".join(map(_model, model))
    if type(model) is str:
        return model
    name = (
        getattr(model, "name", None) or getattr(model, "model_name", None) or getattr(model, "__name__", None)
    )
    return f"{type(model).__name__} {name}" if type(name) is str else type(model).__name__


def _limits(agent: AgentBase) -> Iterator[str]:
    yield f"{agent.max_iterations:,} turn{'' if agent.max_iterations == 1 else 's'}"
    yield f"{agent.timeout_seconds:g} s an action"
    if agent.max_memory_mb is not None:
        yield f"{agent.max_memory_mb:,} MB"
    if agent.max_open_files is not None:
        yield f"{agent.max_open_files:,} open files"
    yield f"{agent.max_output_chars:,} characters of output"


def _budget(agent: AgentBase) -> Iterator[str]:
    assert agent.budget is not None
    limits = (
        (agent.budget.tokens, "{:,} tokens"),
        (agent.budget.usd, "${:g}"),
        (agent.budget.seconds, "{:g} s"),
        (agent.budget.calls, "{:,} requests"),
    )
    return (form.format(limit) for limit, form in limits if limit is not None)


def _registration(one: Registration) -> tuple[str, str, str, str]:
    return one.name, one.kind, one.visibility, one.doc[:DOC_CHARS].partition("\n")[0]
