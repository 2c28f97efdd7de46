"""Tasks as workflows of `DBOS <https://docs.dbos.dev>`_, which keeps the journal of a run as steps.

A workflow that is recovered runs its task again, from the beginning. Each answer of a model and each call of
an external function is given back from its steps: no model is asked and no call made a second time.

A call is two steps, as it is two commits in a state's journal. DBOS runs a step again whose result it has not
got, so a call that is one step could be made twice. The first step says that the call begins, and in which
process; if that is another one, and the second step is not there, the call is in doubt.
"""

from __future__ import annotations

import contextvars
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from agex.agent import Task
from agex.agent.call.options import UNSET
from agex.agent.durable.host_calls import HostCall
from agex.agent.durable.records import CallState, ReplyRecord
from agex.agent.durable.run_journal import Answer, Made, RunJournal
from agex.agent.task.invocation import Invocation
from agex.errors import AgexError, CallInDoubt, CallRejected, DefinitionError, ReplayMismatch, StateError
from agex.models.base import Model, OnText, Reply, Request

__all__ = ["workflow"]

P = ParamSpec("P")
R = TypeVar("R")


def workflow(task: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Register a task as a DBOS workflow, and return the function for ``DBOS.start_workflow``.

    Args:
        task: not async, and without a state: DBOS keeps what it needs.
        name: of the workflow; ``AGENT.TASK`` if not given.

    The arguments and the results of external functions must be what DBOS can serialize. Guest code has to do
    the same when it is run again: clock, chance and results of other host functions are not kept.

    Raises:
        DefinitionError: DBOS is not installed, or the task is async, has a state or samples.
    """
    try:
        from dbos import DBOS
    except ImportError as error:
        raise DefinitionError(
            'Workflows of DBOS need a package that is not installed: run `pip install "agex-py[dbos]"`.'
        ) from error
    if not isinstance(task, Task):
        raise DefinitionError(f"{task!r} is no task of a def: agex.durable.dbos takes those alone.")
    options = task.call_options
    state = task.agent.state if options.state is UNSET else options.state
    if state is not None:
        raise DefinitionError(f"DBOS keeps the run, and {task.__name__} has {state!r}: using(state=None).")
    if (task.definition.samples if options.samples is UNSET else options.samples) != 1:
        raise DefinitionError(f"A workflow has no samples: {task.__name__}.using(samples=1).")

    def run_task(*args: Any, **kwargs: Any) -> Any:
        steps = Steps()
        made = Invocation(
            task.agent,
            task.definition,
            args,
            kwargs,
            replace(options, state=None),
            host_solution=task.host_solution,
            count=task.count,
            run_id=steps.run_id,
        )
        made.models = tuple(_StepModel(model, steps) for model in made.models)
        journal = made.call.journal
        if not isinstance(journal, RunJournal):
            raise DefinitionError("A workflow cannot be a part of another run.")
        journal.steps = steps
        try:
            return made.run().value
        except AgexError as error:
            if hasattr(error, "run"):
                error.run = None  # DBOS keeps the error, and a record of this process cannot be written down
            raise

    run_task.__name__ = run_task.__qualname__ = name or f"{task.agent.name}.{task.__name__}"
    run_task.__doc__ = task.__doc__
    registered: Callable[P, R] = DBOS.workflow(name=run_task.__name__)(run_task)
    return registered


class Steps:
    """The journal of a run as the steps of the DBOS workflow that is going on.

    Raises:
        DefinitionError: none is.
    """

    def __init__(self) -> None:
        from dbos import DBOS

        if DBOS.workflow_id is None:
            raise DefinitionError("The workflow was called outside of DBOS: use DBOS.start_workflow().")
        self._dbos = DBOS
        self._context = contextvars.copy_context()
        self._lock = threading.RLock()
        self._process = uuid.uuid4().hex
        self.run_id = DBOS.workflow_id
        # In a context of its own: in that of the workflow the list would be a step itself.
        recorded = contextvars.Context().run(DBOS.list_workflow_steps, self.run_id)
        self._recorded = len(recorded)
        self._count = 0

    @property
    def is_recorded(self) -> bool:
        """Whether the next step was made before the process ended."""
        return self._count < self._recorded

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the recorded outcome of the next step, or do it now.

        Raises:
            ReplayMismatch: another step is recorded here.
        """
        from dbos import error as dbos_errors

        with self._lock:
            self._count += 1
            try:
                return self._context.copy().run(lambda: self._dbos.run_step({"name": name}, work))
            except dbos_errors.DBOSUnexpectedStepError as error:
                raise ReplayMismatch(f"The run did otherwise than before: {error}", got=name) from error

    # -- the calls to the world --------------------------------------------------------------

    def admit(
        self, wanted: HostCall, key: str, *, repeats: bool, decide: Callable[[], Answer | None]
    ) -> Made:
        """Return the recorded outcome of a call, or take note that it is made now; see `RunJournal.admit`."""
        with self._lock:
            begun = self.step(f"{wanted.name} begins", lambda: self._beginning(wanted, decide))
            if begun["call"] != str(wanted):
                raise ReplayMismatch(
                    f"The code of the run did otherwise than before. Recorded: {begun['call']}. "
                    f"Now: {wanted}. No call was made.",
                    begun["call"],
                    str(wanted),
                    line=wanted.line,
                )
            if begun["rejected"] is not None:
                reason = f": {begun['rejected']}" if begun["rejected"] else ""
                raise CallRejected(f"{wanted.name} was not approved{reason}")
            given = (
                replace(wanted, args=begun["args"], kwargs=begun["kwargs"]) if begun["changed"] else wanted
            )
            if self.is_recorded:
                return self._recorded_outcome(Made(wanted, given, key))
            if begun["process"] != self._process and not repeats:
                self.step(wanted.name, lambda: {"state": "doubt"})
                raise _in_doubt(wanted)
            return Made(wanted, given, key)

    def _beginning(self, wanted: HostCall, decide: Callable[[], Answer | None]) -> Mapping[str, Any]:
        answer = decide()
        given = None if answer is None else answer.approved
        changed = given is not None and given is not wanted
        return {
            "process": self._process,
            "call": str(wanted),
            "rejected": None if answer is None else answer.rejected,
            "changed": changed,
            "args": given.args if given is not None and changed else (),
            "kwargs": dict(given.kwargs) if given is not None and changed else {},
        }

    def _recorded_outcome(self, made: Made) -> Made:
        found = self.step(made.wanted.name, _never)
        match found["state"]:
            case "raised":
                raise found["error"]
            case "returned":
                return replace(made, result=found["result"], is_over=True, out=found["out"])
            case _:
                raise _in_doubt(made.wanted)

    def over(self, made: Made, state: CallState, outcome: Mapping[str, Any], out: str) -> None:
        """Take note of the outcome of a call.

        Raises:
            StateError: it could not be kept; the call is in doubt when the workflow is recovered.
        """
        found = {"state": state, "out": out, "result": outcome.get("result"), "error": outcome.get("error")}
        try:
            self.step(made.wanted.name, lambda: found)
        except ReplayMismatch:
            raise
        except Exception as error:  # of DBOS or of what the result is made of: the call was made
            raise StateError(f"DBOS could not keep what {made.wanted} came to: {error}") from error


class _StepModel(Model):
    """A model whose answers are steps.

    Args:
        model: is asked.
        steps: of the workflow.
    """

    def __init__(self, model: Model, steps: Steps) -> None:
        self._model = model
        self._steps = steps
        self._asked = 0
        self.name, self.provider, self.profile = model.name, model.provider, model.profile

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        self._asked += 1
        number = self._asked
        if self._steps.is_recorded:
            return ReplyRecord.model_validate_json(self._steps.step("model", _never)).reply()
        reply = self._model.ask(request, on_text)
        if number == self._asked:  # else it came too late, and another request is out
            written = ReplyRecord.of(reply).model_dump_json()
            self._steps.step("model", lambda: written)
        return reply


def _never() -> Any:
    raise StateError("A recorded step was not found: another process deletes or changes the workflow.")


def _in_doubt(wanted: HostCall) -> CallInDoubt:
    return CallInDoubt(
        f"{wanted} was begun before the process ended, and its result is not known: it may have been made. "
        "Find out whether it was before you call it again."
    )
