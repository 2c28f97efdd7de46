"""Going on with a run that a state has: one whose process ended, that waits for approval, or that asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agex.agent.base import sandbox_of
from agex.agent.call.options import CallOptions
from agex.agent.durable.host_calls import Decision, HostCall, with_arguments
from agex.agent.durable.run_journal import Answer, Saved
from agex.agent.durable.saved_runs import load, the_one
from agex.agent.execution.grants import host_classes
from agex.agent.task.invocation import Invocation
from agex.agent.task.replays import Replaying
from agex.agent.task.run import Outcome, Resume, Run, let_replay, restore
from agex.errors import DefinitionError, StateCorrupt, StateError, TaskClarify, TaskSuspended
from agex.sandbox import KeptCode
from agex.state import State

if TYPE_CHECKING:
    from agex.agent.task.task import AnyTask

__all__ = ["Resumption", "waiting_for"]


class Resumption:
    """A run of a task, to be carried on.

    Args:
        task: whose run it is.
        options: of the call that goes on.
        state: that has the run.
        run_id: the run; None for the only one of the task that can go on.
        inputs: in the place of those that the state could not keep.

    Raises:
        StateError: the state has no such run, or it has failed.
        DefinitionError: it is a run of another task, or an input is missing.
    """

    def __init__(
        self,
        task: AnyTask[Any, Any],
        options: CallOptions,
        state: State | None,
        run_id: str | None,
        inputs: Mapping[str, Any],
    ) -> None:
        if state is None:
            raise DefinitionError("There is no state that could have the run: give state=Versioned(...).")
        signature = task.definition.terms.signature
        state.admit(
            host_classes(task.agent.registrations, signature), KeptCode(sandbox_of(task.agent, signature))
        )
        self._task = task
        self._options = replace(options, state=state)
        self._state = state
        self.run_id = the_one(state, signature.name) if run_id is None else run_id
        self._inputs = dict(inputs)
        self.saved = self._load()

    def _load(self) -> Saved:
        saved = load(self._state, self.run_id)
        record = saved.record
        if record.task != self._task.__name__:
            raise DefinitionError(
                f"Run {self.run_id} is one of task {record.task!r}, not {self._task.__name__!r}."
            )
        if record.status == "failed":
            raise StateError(f"Run {self.run_id} has failed, and does not go on: {record.message}")
        if record.status == "done":
            return saved
        missing = {name: why for name, why in record.unkept.items() if name not in self._inputs}
        if missing:
            reasons = "; ".join(f"{name} ({why})" for name, why in missing.items())
            raise DefinitionError(
                f"Run {self.run_id} has inputs that the state could not keep: {reasons}. "
                "Give them again: resume(..., inputs={...})."
            )
        given = {name: value for name, value in self._inputs.items() if name in record.unkept}
        inputs = {**saved.inputs, **given}
        parameters = self._task.definition.terms.signature.parameters
        if inputs.keys() != set(parameters):
            raise StateCorrupt(f"Run {self.run_id} has other inputs than its task: {', '.join(inputs)}")
        return replace(saved, inputs=inputs)

    @property
    def goes_on(self) -> bool:
        """Whether it needs no answer first."""
        status = self.saved.record.status
        return status == "open" or (status == "suspended" and self._options.on_approval is not None)

    def invocation(
        self,
        saved: Saved,
        loop: asyncio.AbstractEventLoop | None,
        answer: Answer | None = None,
        record: Run[Any] | None = None,
    ) -> Invocation:
        """Return the call that carries the run on, with the answer to what it waited for."""
        if answer is None and saved.record.answer:
            answer = Answer(text=saved.record.answer)
        made = Invocation(
            self._task.agent,
            self._task.definition,
            (),
            {},
            self._options,
            loop=loop,
            saved=saved,
            answer=answer,
            record=record,
            keeping=self._task.keeping,
            host_solution=self._task.host_solution,
            count=self._task.count,
            wait=waiting_for(self._task, self._options, saved.inputs),
        )
        let_replay(made.record, partial(Replaying, self._task))
        return made

    def waiting(self) -> Run[Any]:
        """Return the run as it stands: it waits, or has its value."""
        saved, record = self.saved, self.saved.record
        run: Run[Any] = Run(
            run_id=self.run_id, agent=record.agent, task=record.task, state=self._state, call=None
        )
        events = tuple(event for event in self._state.events if event.run_id == self.run_id)
        error, resume = self._stopped(run, saved)
        outcome = Outcome(
            value=saved.value,
            error=error,
            events=events,
            usage=record.used.usage(),
            commit=getattr(self._state, "head", None),
            duration=record.seconds,
        )
        restore(run, outcome, resume)
        let_replay(run, partial(Replaying, self._task))
        if error is not None:
            error.run = run
        return run

    def _stopped(
        self, run: Run[Any], saved: Saved
    ) -> tuple[TaskSuspended | TaskClarify | None, Resume | None]:
        record = saved.record
        if record.status == "done":
            if not saved.has_value:
                raise StateError(
                    f"Run {self.run_id} is done, but its value could not be kept: {record.unkept}"
                )
            return None, None
        resume = waiting_for(self._task, self._options, saved.inputs)(run, record.waits)
        if record.status == "asking":
            return TaskClarify(record.question), resume
        call = saved.waiting()
        if call is None:
            raise StateError(f"Run {self.run_id} waits for approval of a call that is not recorded.")
        return TaskSuspended(f"Task {record.task!r} waits for approval of {call}.", call), resume

    # -- with an answer ----------------------------------------------------------------------

    def decided(self, decision: Decision, waits: int) -> tuple[Saved, Answer]:
        """Return the run as it is now, and what was decided.

        Raises:
            RuntimeError: it does not wait any more, or for something else.
            DefinitionError: another call is meant.
        """
        saved, record = self.saved, self.saved.record
        wanted = "asking" if decision.kind == "answer" else "suspended"
        if record.status != wanted or record.waits != waits:
            raise RuntimeError(
                f"Run {self.run_id} waits for this no more: it is {record.status}, at turn {record.turn}."
            )
        if decision.kind == "answer":
            return saved, Answer(text=decision.text)
        call = saved.waiting()
        if call is None or (decision.call is not None and decision.call != call.id):
            waiting = "none" if call is None else f"{call.id}, {call}"
            raise DefinitionError(
                f"The answer is for call {decision.call}, and the one that waits is {waiting}."
            )
        if decision.kind == "reject":
            return saved, Answer(rejected=decision.text)
        return saved, Answer(approved=with_arguments(call, self._target(call), decision.arguments))

    def _target(self, call: HostCall) -> Any:
        """Return the function of a call; None where it is not registered any more."""
        module, _, member = call.name.rpartition(".")
        for one in self._task.agent.registrations:
            if one.name == call.name:
                return one.target
            if one.kind in ("module", "object") and one.acts and one.name == module:
                return getattr(one.target, member, None)
        return None


def waiting_for(
    task: AnyTask[Any, Any], options: CallOptions, inputs: Mapping[str, Any]
) -> Callable[[Run[Any], int], Resume]:
    """Return what makes of a run that stops what goes on with it; *inputs* stand in for those not kept."""

    def resume_of(run: Run[Any], waits: int) -> Resume:
        def begin(decision: Decision, loop: asyncio.AbstractEventLoop | None) -> Invocation:
            resumption = Resumption(task, options, run.state, run.run_id, inputs)
            saved, answer = resumption.decided(decision, waits)
            return resumption.invocation(saved, loop, answer, run)

        def go_on(decision: Decision) -> None:
            if task.definition.terms.signature.is_async:
                asyncio.run(ago_on(decision))
            else:
                begin(decision, None).run()

        async def ago_on(decision: Decision) -> None:
            await begin(decision, asyncio.get_running_loop()).arun()

        return Resume(sync=go_on, asynchronous=ago_on)

    return resume_of
