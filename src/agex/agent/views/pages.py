"""What there is to see of runs, agents and tasks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agex.agent.loop.events import ActionEvent, SuccessEvent
from agex.agent.prompt.listing import signature_text
from agex.agent.views.value_view import exhibits
from agex.display import Code, Fold, Page, Part, Table, Text, Tone, cut
from agex.errors import TaskClarify

if TYPE_CHECKING:
    from agex.agent.agent import Agent
    from agex.agent.registration import Registration
    from agex.agent.task.invocation import Definition
    from agex.agent.task.run import Run
    from agex.models.base import Usage

__all__ = ["agent_page", "run_facts", "run_page", "task_page"]

DOC_CHARS = 200
"""Of what a registration is for."""
PRIMER_CHARS = 2_000


# -- runs ----------------------------------------------------------------------------------------


def run_facts(run: Run[Any]) -> Iterator[str]:
    """Give in a few words each how it stands and what it took."""
    yield _how(run)
    yield _counted(run.turns, "turn")
    yield from _spent(run.usage)
    yield f"{run.duration:.1f} s"
    if run.commit is not None:
        yield f"commit {run.commit[:12]}"


def run_page(run: Run[Any]) -> Page:
    """Show a run: how it ended, its value, then its events in order."""
    title = f"{run.agent}.{run.task}"
    return Page(title=title, facts=tuple(run_facts(run)), parts=tuple(_run_parts(run)), tone=_tone(run))


def _run_parts(run: Run[Any]) -> Iterator[Part]:
    if run.ok:
        yield from exhibits(run.value, "value")
    elif run.error is not None:
        message = run.error.args[0] if run.error.args else ""
        yield Text(text=message if type(message) is str else type(run.error).__name__, bad=True)
    own = [event for event in run.events if event.run_id == run.run_id]
    last = next((event for event in reversed(own) if type(event) is ActionEvent), None)
    for event in run.events:
        if event.run_id != run.run_id:
            yield Fold(page=event.page())
        elif not (run.ok and type(event) is SuccessEvent):  # which is shown above
            yield Fold(page=_untitled(event.page()), open=event is last)


def _untitled(page: Page) -> Page:
    """Leave out the task's name, which stands above."""
    return replace(page, title=page.facts[0], facts=page.facts[1:])


def _how(run: Run[Any]) -> str:
    if not run.done():
        return "running"
    return "done" if run.error is None else type(run.error).__name__


def _tone(run: Run[Any]) -> Tone:
    if not run.done():
        return "plain"
    if run.error is None:
        return "good"
    return "asking" if isinstance(run.error, TaskClarify) else "bad"


def _spent(usage: Usage) -> Iterator[str]:
    yield f"{usage.input_tokens:,}+{usage.output_tokens:,} tokens"
    if usage.cost is None:
        yield "price unknown"
    elif usage.cost:
        yield f"${usage.cost:.4f}"


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


# -- agents --------------------------------------------------------------------------------------


def agent_page(agent: Agent) -> Page:
    """Show an agent: what it thinks with, its limits, and what its code may use."""
    return Page(title=agent.name, facts=("agent",), parts=tuple(_agent_parts(agent)))


def _agent_parts(agent: Agent) -> Iterator[Part]:
    yield Table(rows=tuple(_settings(agent)))
    if agent.primer:
        yield Text(text=cut(agent.primer, PRIMER_CHARS), label="primer")
    if agent.registrations:
        yield Table(
            head=("name", "kind", "shown", "what for"),
            rows=[_registration(one) for one in agent.registrations],
            label="its code may use",
        )


def _settings(agent: Agent) -> Iterator[tuple[str, str]]:
    yield "model", _model(agent.model)
    yield "code runs", "in this process" if agent.isolation == "none" else f"at level {agent.isolation!r}"
    yield "state", "none" if agent.state is None else repr(agent.state)
    yield "limits", ", ".join(_limits(agent))
    if agent.budget is not None:
        yield "budget", ", ".join(_budget(agent))


def _model(model: object) -> str:
    """Name a model; what else is in it may be a key."""
    if model is None:
        return "what the environment offers"
    if type(model) is str:
        return model
    name = (
        getattr(model, "name", None) or getattr(model, "model_name", None) or getattr(model, "__name__", None)
    )
    return f"{type(model).__name__} {name}" if type(name) is str else type(model).__name__


def _limits(agent: Agent) -> Iterator[str]:
    yield _counted(agent.max_iterations, "turn")
    yield f"{agent.timeout_seconds:g} s an action"
    if agent.max_memory_mb is not None:
        yield f"{agent.max_memory_mb:,} MB"
    if agent.max_open_files is not None:
        yield f"{agent.max_open_files:,} open files"
    yield f"{agent.max_output_chars:,} characters of output"


def _budget(agent: Agent) -> Iterator[str]:
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


# -- tasks ---------------------------------------------------------------------------------------


def task_page(task: Any, definition: Definition) -> Page:
    """Show a task: its signature and what it is told beside."""
    title = f"{task.agent.name}.{task.__name__}"
    return Page(title=title, facts=("task",), parts=tuple(_task_parts(task, definition)))


def _task_parts(task: Any, definition: Definition) -> Iterator[Part]:
    yield Code(text=f"def {task.__name__}{signature_text(task)}")
    for label, text in (("", task.__doc__), ("primer", definition.primer)):
        if text:
            yield Text(text=inspect.cleandoc(text), label=label)
    if definition.setup:
        yield Code(text=definition.setup, label="setup")
    terms = definition.terms
    facts = [
        *([f"{_counted(len(terms.checks), 'check')} of the value"] if terms.checks else []),
        *([_counted(len(terms.examples), "example")] if terms.examples else []),
        *(["code that solved it is tried first"] if definition.reuse else []),
    ]
    if facts:
        yield Text(text=", ".join(facts))
