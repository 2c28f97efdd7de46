"""The pages that show runs and tasks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agex.agent.call.events import ActionEvent, SuccessEvent
from agex.agent.prompt.listing import signature_text
from agex.agent.rendering.value_view import exhibits
from agex.display import Code, Fold, Page, Part, Text, Tone
from agex.errors import TaskClarify

if TYPE_CHECKING:
    from agex.agent.call.terms import Definition
    from agex.agent.task.run import Run
    from agex.models.base import Usage

__all__ = ["run_facts", "run_page", "task_page"]

DOC_CHARS = 200
"""Of what a registration is for."""
PRIMER_CHARS = 2_000


# -- runs ----------------------------------------------------------------------------------------


def run_facts(run: Run[Any]) -> Iterator[str]:
    """Yield how a run stands and what it took, in a few words each."""
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
        *([f"{definition.solution} is tried first"] if definition.solution else []),
        *(["code that solved it is tried first"] if definition.reuse else []),
    ]
    if facts:
        yield Text(text=", ".join(facts))
