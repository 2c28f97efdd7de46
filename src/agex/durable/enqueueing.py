"""Writing a run down for a worker, which begins it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec

from agex.agent import AsyncTask, Task
from agex.agent.call.options import UNSET
from agex.agent.durable.carriers import Enqueued
from agex.agent.durable.run_journal import RunJournal
from agex.agent.task.invocation import Invocation
from agex.errors import DefinitionError
from agex.state import Versioned

__all__ = ["enqueue"]

P = ParamSpec("P")


def enqueue(task: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> str:
    """Write a run of a task into its ``Versioned`` state, and return its id; a worker carries it out.

    ``task.using(state=Versioned(store, branch="order-7", create=True))`` says where. Runs of one branch are
    carried out one after another, those of different branches by as many workers as there are. ``agex.runs``
    lists them; ``task.resume(run_id=...)`` gives the value of one that is done.

    Raises:
        InputError: an argument does not fit its annotation.
        DefinitionError: it is no task, has no ``Versioned`` state, samples, or an input that cannot be kept.
        ModelNotConfigured: there is no model to ask.
    """
    if not isinstance(task, Task | AsyncTask):
        raise DefinitionError(f"{task!r} is not a task; decorate the function with @agent.task.")
    options, inputs = task.call_options.taken_from(kwargs, task.definition.terms.signature.parameters)
    state = task.agent.state if options.state is UNSET else options.state
    if not isinstance(state, Versioned):
        raise DefinitionError(
            f"A run that a worker carries out needs a state in a store, and {task.__name__} has {state!r}: "
            "enqueue(task.using(state=Versioned(store, branch=...)), ...)."
        )
    if (task.definition.samples if options.samples is UNSET else options.samples) != 1:
        raise DefinitionError(f"A run with samples cannot be enqueued: {task.__name__}.using(samples=1).")
    made = Invocation(
        task.agent,
        task.definition,
        args,
        inputs,
        replace(options, state=state),
        keeping=task.keeping,
        host_solution=task.host_solution,
        count=task.count,
    )
    journal = made.call.journal
    if not isinstance(journal, RunJournal):
        made.call.leave()
        raise DefinitionError("A run cannot be enqueued by the code of another one: do it from the host.")

    def before_first_step(begins: bool) -> None:
        if not begins:
            return
        journal.stage()
        if journal.record.unkept:
            why = "; ".join(f"{name} ({why})" for name, why in journal.record.unkept.items())
            raise DefinitionError(f"No worker could be given these inputs of {task.__name__}: {why}.")
        raise Enqueued("The run is left to a worker.")

    made.call.gate = before_first_step
    try:
        made.run()
    except Enqueued:
        return made.record.run_id
    raise AssertionError  # a run has a first step
