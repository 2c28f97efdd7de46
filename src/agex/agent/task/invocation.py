"""One call of a task, from its arguments to its record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agex import values
from agex.agent.call.budget import Ledger
from agex.agent.call.call import Call, current_call, payer
from agex.agent.call.events import (
    ANSWERED,
    ErrorEvent,
    FileEvent,
    OutputEvent,
    SystemNoteEvent,
    TaskStartEvent,
)
from agex.agent.call.options import UNSET, CallOptions
from agex.agent.call.terms import Definition
from agex.agent.execution.execution import Execution
from agex.agent.execution.grants import host_classes, named_by
from agex.agent.execution.name_bindings import RESERVED
from agex.agent.loop.drivers import adrive, drive
from agex.agent.loop.loop import Commit, Conversation, Execute, Loop, Observation, Plan, Talk, Tried, solve
from agex.agent.loop.telemetry import task_span
from agex.agent.prompt.completion import CompletionConversation
from agex.agent.prompt.handover import handover
from agex.agent.prompt.prompt import Brief, FullConversation
from agex.agent.task.returned_functions import Origin, handed_over
from agex.agent.task.run import Resume, Run
from agex.agent.task.state_codec import KeptCode
from agex.errors import (
    AgexError,
    CheckError,
    StateError,
    TaskCancelled,
    TaskClarify,
    TaskError,
    TaskFail,
)
from agex.models.actions import PythonAction
from agex.models.base import Model
from agex.sandbox import Session
from agex.state import State

if TYPE_CHECKING:
    from agex.agent.base import AgentBase
    from agex.agent.execution.task_workspace import TaskFiles

__all__ = ["Invocation"]

PYTHON_ONLY = ("python_action",)
ACTIONS = (*PYTHON_ONLY, "write_file", "edit_file", "terminal_action")
"""Actions that a model may ask for where there is a workspace."""


class Invocation:
    """One call of a task. Its arguments are checked, and its model is known, once it is made.

    Args:
        agent: whose task it is.
        definition: the task.
        args, kwargs: the arguments.
        options: what the caller added.
        kept_code: code that solved it before.
        solved: told the code that solved it.
        loop: the event loop of an async task.

    Raises:
        InputError: an argument does not fit.
        ModelNotConfigured: there is no model to ask.
        DefinitionError: an option cannot work here.
    """

    def __init__(
        self,
        agent: AgentBase,
        definition: Definition,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: CallOptions,
        *,
        kept_code: str | None = None,
        solved: Callable[[str], None] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        signature = definition.terms.signature
        options.require_usable(in_async_task=signature.is_async)
        self.values = signature.bind(args, kwargs)
        self.models: tuple[Model, ...] = agent.resolved_models()
        self.definition = definition
        self.registrations = agent.registrations
        self.state: State | None = agent.state if options.state is UNSET else options.state
        parent = current_call()
        self.ledger = Ledger(options.budget or agent.budget, parent=payer())
        self.call = Call(
            ledger=self.ledger,
            agent=agent,
            parent=parent,
            state=self.state,
            on_event=options.on_event,
            on_token=options.on_token,
            loop=loop if signature.is_async else None,
        )
        self.call.require_room()
        self._files = files = agent.task_files(self.state)
        self.plan = Plan(
            agent=agent.name,
            task=signature.name,
            models=tuple(each.full_name for each in self.models),
            escalate_after=agent.escalate_after,
            max_iterations=agent.max_iterations,
            llm_retries=agent.llm_retries,
            llm_timeout=agent.llm_timeout,
            max_actions=agent.max_actions,
            output_chars=agent.max_output_chars,
            kept_code=kept_code,
            actions=max((_offered(each, files) for each in self.models), key=len),
        )
        self.record: Run[Any] = Run(
            run_id=self.plan.run_id,
            agent=self.plan.agent,
            task=self.plan.task,
            state=self.state,
            call=self.call,
        )
        self._solved = solved
        self._value: Any = None
        self._agent_primer = agent.primer
        self._python = agent.python
        self._extras = agent.extras
        self._session = session = agent.session(signature, files)
        self._variables: dict[str, Any] = {}
        self._hidden: list[str] = []
        if self.state is not None:
            here = session if isinstance(session, Session) else None
            code = KeptCode(agent.sandbox(signature), here)
            self.state.admit(host_classes(self.registrations, signature), code)
        view = self.call.begin_view()
        if view is not None:
            found = view.snapshot(packed=session.packs)
            self._variables = {name: value for name, value in found.items() if name not in RESERVED}
            self._hidden = [name for name in found if name in RESERVED]
            imports = view.imports
            session.import_again({name: imports[name] for name in imports.keys() - self.values.keys()})
        session.add({**self._variables, **self.values})
        self.call.session = session
        self.execution = Execution(
            session=session,
            terms=definition.terms,
            values=self.values,
            call=self.call,
            registrations=self.registrations,
            output_chars=agent.max_output_chars,
            sees=all(each.profile.images for each in self.models),
            files=files,
        )
        try:
            session.open()
        except BaseException:
            self.call.leave()
            raise
        self.ledger.begin()

    def run(self) -> Run[Any]:
        """Carry it out in this thread."""
        self._carry_out(self._steps())
        return self.record

    async def arun(self) -> Run[Any]:
        """Carry it out without blocking the event loop."""
        await self._acarry_out(self._steps())
        return self.record

    def _carry_out(self, steps: Loop[Any]) -> None:
        with self._recorded(), self.call.entered(), task_span(self.plan, self.call), self._settled_on_error():
            self._value = drive(steps, self.plan, self.call, self.models, self.execution)
            self.call.settle(f"{self.plan.task}: done", last=True)

    async def _acarry_out(self, steps: Loop[Any]) -> None:
        span = task_span(self.plan, self.call)
        with self._recorded(), self._driven(), self.call.entered(), span, self._settled_on_error():
            self._value = await adrive(steps, self.plan, self.call, self.models, self.execution)
            await self.call.asettle(f"{self.plan.task}: done", last=True)

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Close the record with the value, or with what is raised."""
        try:
            yield
        except BaseException as error:
            ended = error if not isinstance(error, asyncio.CancelledError) else TaskCancelled("cancelled")
            self._close(error=ended)
            if isinstance(ended, AgexError):
                if ended.run is None:
                    ended.run = self.record
                if self.call.parent is not None and not isinstance(ended, CheckError):
                    _forget_behind(ended)  # an agent's code may catch it, by way of a host function
                elif isinstance(ended, TaskError) and ended.__cause__ is None:
                    ended.__cause__ = self.call.fault
            raise
        self._close(value=self._value if self.call.parent else handed_over(self._value, self._origin))
        if self._solved is not None and self.execution.solution is not None:
            self._solved(self.execution.solution)

    def _origin(self) -> Origin:
        return Origin(registrations=self.registrations, named=named_by(self.definition.terms.signature))

    def _close(self, *, value: Any = None, error: BaseException | None = None) -> None:
        self.ledger.pause()
        if not isinstance(error, TaskClarify):  # after that it may go on where it stopped
            self._session.close()
        resume = Resume(sync=self._go_on, asynchronous=self._ago_on)
        self.record.close(
            value=value,
            code=self.execution.solution,
            error=error,
            resume=resume if isinstance(error, TaskClarify) else None,
        )

    @contextmanager
    def _driven(self) -> Iterator[None]:
        """Let the call be withdrawn meanwhile; a withdrawal is a ``TaskCancelled``, not asyncio's own."""
        task = asyncio.current_task()
        self.call.driven_by(task)
        try:
            yield
        except asyncio.CancelledError:
            if not self.call.withdrawn or task is None:
                raise
            task.uncancel()
            raise TaskCancelled(f"Task {self.plan.task!r} was cancelled by its caller.") from None
        finally:
            self.call.driven_by(None)

    def _go_on(self, answer: str) -> None:
        """Carry on with the answer to what the task asked."""
        self._carry_out(self._answered(answer))

    async def _ago_on(self, answer: str) -> None:
        await self._acarry_out(self._answered(answer))

    def _answered(self, answer: str) -> Loop[Any]:
        turn = self.record.turns
        self.record.reopen(self.call)
        self.ledger.resume()
        yield self.plan.event(SystemNoteEvent, turn, message=f"{ANSWERED}{answer}")
        self._talk.conversation.answered(answer)
        return (yield from solve(self.plan, self._talk, self.ledger, turn=turn))

    @contextmanager
    def _settled_on_error(self) -> Iterator[None]:
        """Commit the end of a task that raises."""
        try:
            yield
        except StateError:
            self.call.leave()
            raise  # what could not be committed is said already
        except BaseException as error:
            try:
                self.call.settle(f"{self.plan.task}: {type(error).__name__}", last=True)
            except StateError as unkept:
                error.add_note(f"Its end could not be committed: {unkept}")
            raise

    def _steps(self) -> Loop[Any]:
        yield self.plan.event(TaskStartEvent, 0, inputs=self.values, python=self._python)
        for name in self._hidden:
            note = (
                f"The state's variable {name!r} stays as it is, out of reach of code: that name is agex's. "
                f"Keep it under another name: state['my_{name}'] = state.pop({name!r})."
            )
            yield self.plan.event(SystemNoteEvent, 0, message=note)
        shown = (yield from self._set_up(self.definition.setup)) if self.definition.setup else ""
        self._talk = Talk(self._conversation(shown), self._successor)
        return (yield from solve(self.plan, self._talk, self.ledger))

    def _set_up(self, setup: str) -> Loop[str]:
        """Run the setup code; return what it showed."""
        seen: Observation = yield Execute(PythonAction(code=setup), 0)
        yield self.plan.event(OutputEvent, 0, text=seen.text, error=seen.failed, seconds=seen.seconds)
        if seen.files:
            yield self.plan.event(FileEvent, 0, **seen.files)
        yield Commit(0)
        if seen.failed or seen.ending is not None:
            problem = seen.text if seen.failed else "it ended the task"
            message = f"The setup code of task {self.plan.task!r} failed before the first turn: {problem}"
            yield self.plan.event(ErrorEvent, 0, message=message, error="TaskFail")
            raise TaskFail(message)
        return seen.text

    def _conversation(self, setup_shown: str) -> Conversation:
        self._brief = Brief(
            terms=self.definition.terms,
            inputs=self.values,
            variables=self._shown(),
            registrations=self.registrations,
            agent_primer=self._agent_primer,
            task_primer=self.definition.primer,
            setup=self.definition.setup,
            setup_shown=setup_shown,
            turns=self.plan.max_iterations,
            python=self._python,
            extras=self._extras if self._files is not None else "",
            recap=self._recap(),
        )
        return self._with(self.models[0], self._brief)

    def _successor(self, model: int, tried: Sequence[Tried]) -> Conversation:
        """Begin the conversation with a further model, which is told what was tried."""
        told = handover(tried, self.execution.names)
        conversation = self._with(
            self.models[model], replace(self._brief, handover=told, recap=self._recap())
        )
        if tried and isinstance(conversation, CompletionConversation):
            conversation.add(*tried[-1])  # it is shown the last attempt, and nothing of the others
        return conversation

    def _with(self, model: Model, brief: Brief) -> Conversation:
        brief = replace(brief, actions=_offered(model, self._files))
        if model.profile.style == "completion":
            return CompletionConversation(brief)
        return FullConversation(brief, model.profile)

    def _recap(self) -> str:
        return self._files.recap() if self._files is not None else ""

    def _shown(self) -> dict[str, Any]:
        """Return the state's variables as they are shown: what is of a worker's code is sketched."""
        variables = {name: value for name, value in self._variables.items() if name not in self.values}
        if not self._session.packs:
            return variables
        allow = values.Allow(host_classes(self.registrations, self.definition.terms.signature))
        found: dict[str, Any] = {}
        for name, value in values.sketched(variables, allow=allow).items():
            found[name] = values.stand_in(value) if type(value) is values.NotKept else value
        return found


def _forget_behind(error: BaseException) -> None:
    """Cut an error off those before it: that of a provider has the request, with the key."""
    error.__cause__ = error.__context__ = None


def _offered(model: Model, files: TaskFiles | None) -> tuple[str, ...]:
    """Return the actions of a task."""
    if files is None or model.profile.style == "completion":
        return PYTHON_ONLY
    return ACTIONS
