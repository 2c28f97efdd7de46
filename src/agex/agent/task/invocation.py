"""One call of a task, from its arguments to its record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agex import values
from agex._interpreter.threads import off_loop
from agex.agent.base import AgentBase, extras_of, sandbox_of, session_of, task_files_of
from agex.agent.call.budget import Ledger
from agex.agent.call.call import Call, current_call, driven, payer
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
from agex.agent.durable.carriers import LEFT_OPEN, Enqueued
from agex.agent.durable.external_functions import journal_above
from agex.agent.durable.host_calls import Decision
from agex.agent.durable.kept_conversation import noted, replay
from agex.agent.durable.records import RunRecord
from agex.agent.durable.run_journal import Answer, RunJournal, Saved
from agex.agent.execution.execution import Execution
from agex.agent.execution.grants import host_classes, named_by
from agex.agent.execution.name_bindings import RESERVED
from agex.agent.loop.drivers import adrive, drive
from agex.agent.loop.loop import Commit, Conversation, Execute, Loop, Observation, Plan, Talk, Tried, solve
from agex.agent.loop.telemetry import task_span
from agex.agent.prompt.completion import CompletionConversation
from agex.agent.prompt.handover import handover
from agex.agent.prompt.prompt import Brief, FullConversation
from agex.agent.task.host_solutions import HostSolution, WithSolution, consulted, is_consulting, models_of
from agex.agent.task.kept_solutions import Ended, Keeping, KeptSolution, SolvedWith
from agex.agent.task.means import acts, means_of, require_answer, require_same
from agex.agent.task.returned_functions import Origin, handed_over
from agex.agent.task.run import Resume, Run, close, reopen
from agex.agent.task.state_codec import KeptCode
from agex.agent.task.taping import NOT_AGAIN, Again, Taping
from agex.errors import (
    AgexError,
    CheckError,
    DefinitionError,
    LLMFail,
    StateError,
    TaskCancelled,
    TaskClarify,
    TaskError,
    TaskFail,
    TaskSuspended,
)
from agex.models.actions import PythonAction
from agex.models.base import Model
from agex.sandbox import Session
from agex.state import State

if TYPE_CHECKING:
    from agex.agent.execution.task_workspace import TaskFiles

__all__ = ["Invocation"]

MESSAGE_CHARS = 2_000
"""Of why a run failed, in its record."""
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
        keeping: returns the kept code that it begins with.
        host_solution: tried before any code.
        count: told by what it was solved.
        loop: the event loop of an async task.
        saved: the run that goes on, as the state has it.
        answer: to what it waits for.
        record: the run's record, where the host holds it already.
        wait: makes of the run that stops what goes on with it.
        sample: which of several runs of the current call it is, from 1; `run_id` is that of the call.
        run_id: of the run; a new one by default.
        inputs: its inputs by name, in the place of the arguments.
        only_kept_code: whether no model is asked.
        again: a run of this task that is replayed.

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
        keeping: Keeping | None = None,
        host_solution: HostSolution | None = None,
        count: Callable[[SolvedWith], None] = lambda how: None,
        loop: asyncio.AbstractEventLoop | None = None,
        saved: Saved | None = None,
        answer: Answer | None = None,
        record: Run[Any] | None = None,
        wait: Callable[[Run[Any], int], Resume] | None = None,
        sample: int | None = None,
        run_id: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        only_kept_code: bool = False,
        again: Again = NOT_AGAIN,
    ) -> None:
        signature = definition.terms.signature
        options.require_usable(in_async_task=signature.is_async)
        given = inputs if saved is None else saved.inputs
        self.values = signature.bind(args, kwargs) if given is None else dict(given)
        self._saved = saved
        self._answer = answer
        self._wait = wait
        self._count = count
        self._talk: Talk | None = None
        find = partial(models_of, agent, host_solution)
        self._taping = taping = Taping(agent, signature, self.values, sample, find=find, again=again)
        self.models, self._unasked = taping.models, taping.unasked
        self.definition = definition
        self.registrations = agent.registrations
        self.state: State | None = agent.state if options.state is UNSET else options.state
        self._value: Any = None
        self.ledger = Ledger(options.budget or agent.budget, parent=payer())
        self.call = Call(
            ledger=self.ledger,
            agent=agent,
            parent=current_call(),
            state=self.state,
            on_event=options.on_event,
            on_token=options.on_token,
            on_approval=options.on_approval,
            loop=loop if signature.is_async else None,
            sample=sample,
        )
        self.call.require_room()
        self.call.tape = taping.run
        self._files = files = task_files_of(agent, self.state)
        self.plan = Plan(
            agent=agent.name,
            task=signature.name,
            models=tuple(each.full_name for each in self.models) or ("",),
            escalate_after=agent.escalate_after,
            max_iterations=0 if only_kept_code else agent.max_iterations,
            sample=self.call.sample,
            llm_retries=agent.llm_retries,
            llm_timeout=agent.llm_timeout,
            max_actions=agent.max_actions,
            output_chars=agent.max_output_chars,
            actions=max((_offered(each, files) for each in self.models), key=len, default=PYTHON_ONLY),
            run_id=(run_id or uuid4().hex) if saved is None else saved.record.run_id,
        )
        self.record: Run[Any] = record or Run(
            run_id=self.plan.run_id,
            agent=self.plan.agent,
            task=self.plan.task,
            state=self.state,
            call=self.call,
        )
        self._agent = agent
        self._agent_primer = agent.primer
        self._python = agent.python
        self._extras = extras_of(agent)
        sandbox = taping.sandbox
        self._session = session = session_of(agent, signature, files, sandbox)
        self._variables: dict[str, Any] = {}
        self._hidden: list[str] = []
        self._begin_view()
        self.call.session = session
        self.execution = Execution(
            session=session,
            terms=definition.terms,
            values=taping.inputs,
            call=self.call,
            registrations=taping.registrations,
            output_chars=agent.max_output_chars,
            sees=all(each.profile.images for each in self.models),
            files=files,
            policy=sandbox.policy if agent.python == "guarded" else None,
            received=taping.received,
        )
        self._runner = (
            None if host_solution is None else WithSolution(self.execution, host_solution, self.values)
        )
        self._journal: RunJournal | None = None
        self._solution: KeptSolution | None = None
        try:
            self._find_solution(keeping)
            self._journal = self.call.journal = self._new_journal()
            require_answer(self.registrations, self.call)
            session.begin()
        except BaseException:
            self.call.leave()
            raise
        self.ledger.begin()
        if saved is not None:
            self.ledger.restore(saved.record.used.usage(), saved.record.seconds)
        if record is not None:
            reopen(record, self.call)

    def _find_solution(self, keeping: Keeping | None) -> None:
        """Let code that solved the task before be tried first."""
        if keeping is not None:
            log = None if self.call.view is None else self.call.view.log
            self._solution = keeping(self.state, log, self.values)
        found = None if self._solution is None else self._solution.code
        self.plan = replace(self.plan, kept_code=self._taping.tried(found))

    def _begin_view(self) -> None:
        """Begin a view of the state, and give the session its variables and the inputs."""
        if self.state is not None:
            here = self._session if isinstance(self._session, Session) else None
            signature = self.definition.terms.signature
            code = KeptCode(sandbox_of(self._agent, signature), here)
            self.state.admit(host_classes(self.registrations, signature), code)
        view, session = self.call.begin_view(), self._session
        if view is not None:
            found = view.snapshot(packed=session.packs)
            self._variables = {name: value for name, value in found.items() if name not in RESERVED}
            self._hidden = [name for name in found if name in RESERVED]
            imports = view.imports
            session.import_again({name: imports[name] for name in imports.keys() - self.values.keys()})
        rebound = () if self._saved is None else self._saved.record.rebound
        given = {name: value for name, value in self._taping.inputs.items() if name not in rebound}
        session.add({**self._variables, **given})

    def _new_journal(self) -> RunJournal | None:
        """Return the journal of this run; None for a part of another run that is kept."""
        log = None if self.call.view is None else self.call.view.log
        above = journal_above(self.call.parent)
        if above is not None and (above.is_durable or log is None):
            if self._saved is not None:
                raise DefinitionError(
                    "A run cannot be resumed by the code of another one: resume it from the host."
                )
            return None
        means = (
            {} if log is None else means_of(self._agent, self.registrations, self.definition.terms.signature)
        )
        saved = self._saved
        if saved is not None:
            require_same(saved.record.run_id, saved.means, means)
        began = RunRecord(
            run_id=self.plan.run_id,
            agent=self.plan.agent,
            task=self.plan.task,
            branch=getattr(self.state, "branch", ""),
            started=time.time(),
            last_turn=self.plan.max_iterations,
        )
        names = lambda: self._session.namespace  # noqa: E731
        return RunJournal(
            began if saved is None else saved.record,
            log=log,
            ledger=self.ledger,
            means=means,
            inputs=self._taping.inputs,
            names=names,
            saved=saved,
            again=self._taping.again.calls,
        )

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
            with self._taping.ending(lambda: self._value):
                observed = self._taping.observed(steps)
                self._value = drive(
                    observed, self.plan, self.call, self.models, self._runner or self.execution
                )
            self._settle("done")

    async def _acarry_out(self, steps: Loop[Any]) -> None:
        span = task_span(self.plan, self.call)
        with (
            self._recorded(),
            driven(self.call, self.plan.task),
            self.call.entered(),
            span,
            self._settled_on_error(),
        ):
            with self._taping.ending(lambda: self._value):
                observed = self._taping.observed(steps)
                self._value = await adrive(
                    observed, self.plan, self.call, self.models, self._runner or self.execution
                )
            if self.call.view is None:
                self._settle("done")
            else:
                await off_loop(lambda: self._settle("done"))

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Close the record with the value, or with what is raised."""
        try:
            yield
        except BaseException as error:
            ended = error if not isinstance(error, asyncio.CancelledError) else TaskCancelled("cancelled")
            self._close(error=ended)
            if isinstance(ended, AgexError):
                is_whole = isinstance(ended, TaskSuspended) and self._journal is not None
                if ended.run is None or is_whole:
                    ended.run = self.record
                if self.call.caller is not None and not isinstance(ended, CheckError):
                    _forget_behind(ended)  # an agent's code may catch it, by way of a host function
                elif isinstance(ended, TaskError) and ended.__cause__ is None:
                    ended.__cause__ = self.call.fault
            raise
        self._close(value=self._value if self.call.caller else handed_over(self._value, self._origin))
        self._count(self.solved_with())

    def _origin(self) -> Origin:
        return Origin(registrations=self.registrations, named=named_by(self.definition.terms.signature))

    def _close(self, *, value: Any = None, error: BaseException | None = None) -> None:
        self.ledger.pause()
        if not isinstance(error, TaskClarify):  # after that it may go on where it stopped
            self._session.close()
        resume = None
        if isinstance(error, TaskClarify):
            resume = Resume(sync=self._go_on, asynchronous=self._ago_on)
        elif isinstance(error, TaskSuspended) and self._journal is not None and self._wait is not None:
            resume = self._wait(self.record, self._journal.record.waits)
        close(self.record, value=value, code=self.execution.solution, error=error, resume=resume)

    def solved_with(self) -> SolvedWith:
        """Return by what a call that is over was solved."""
        if self.record.turns:
            return "model"
        return "kept" if self._runner is None or self._runner.error is not None else "solution"

    def _settle(self, how: str, error: BaseException | None = None) -> None:
        """Commit the end of the call, with what it leaves of kept code."""
        self._finish(error)
        with self._left_solution() if self._solution is not None else nullcontext():
            self.call.settle(f"{self.plan.task}: {how}", last=True)

    def _left_solution(self) -> AbstractContextManager[None]:
        assert self._solution is not None
        ended = Ended(
            source=self.execution.solution,
            failure=None if self._talk is None else self._talk.kept_failure,
            run_id=self.plan.run_id,
            events=tuple(self.call.events),
            value=self._value,
            is_built=self.execution.is_built,
        )
        return self._solution.left(ended)

    def choose(self) -> None:
        """Keep what this sample leaves of code that solved the task."""
        if self._solution is not None:
            self._solution.choose()

    def give_up(self) -> None:
        """Let go of what a run that asked its caller has kept, to go on with."""
        self._session.close()

    def _finish(self, error: BaseException | None = None) -> None:
        """Let the next commit hold how the run ended."""
        if self._journal is None:
            return
        if error is None:
            self._journal.finish("done", value=self._value)
        elif isinstance(error, TaskClarify):
            self._journal.finish("asking", message=error.message)
        elif isinstance(error, LLMFail | Enqueued):  # the model may answer another day
            self._journal.finish("open")
        else:
            self._journal.finish("failed", message=f"{type(error).__name__}: {error}"[:MESSAGE_CHARS])

    def _go_on(self, answer: Decision) -> None:
        """Carry on with the answer to what the task asked."""
        self._carry_out(self._answered(answer.text))

    async def _ago_on(self, answer: Decision) -> None:
        await self._acarry_out(self._answered(answer.text))

    def _answered(self, answer: str) -> Loop[Any]:
        turn = self.record.turns
        reopen(self.record, self.call)
        self.ledger.resume()
        if self._journal is not None:
            last_turn = turn + self.plan.max_iterations
            self._journal.take(Answer(text=answer), last_turn=last_turn, branch=self._journal.record.branch)
        yield self.plan.event(SystemNoteEvent, turn, message=f"{ANSWERED}{answer}")
        talk = self._talk
        assert talk is not None
        talk.conversation.answered(answer)
        return (yield from solve(self.plan, talk, self.ledger, turn=turn))

    @contextmanager
    def _settled_on_error(self) -> Iterator[None]:
        """Commit the end of a task that raises."""
        try:
            yield
        except StateError:
            self.call.leave()
            raise  # what could not be committed is said already
        except LEFT_OPEN:
            self.call.abandon()
            raise  # the action is run again, from its beginning
        except BaseException as error:
            try:
                self._settle(type(error).__name__, error)
            except StateError as unkept:
                error.add_note(f"Its end could not be committed: {unkept}")
            raise

    def _steps(self) -> Loop[Any]:
        if self._saved is not None:
            return (yield from self._resumed(self._saved))
        yield self.plan.event(TaskStartEvent, 0, inputs=self.values, python=self._python)
        for name in self._hidden:
            note = (
                f"The state's variable {name!r} stays as it is, out of reach of code: that name is agex's. "
                f"Keep it under another name: state['my_{name}'] = state.pop({name!r})."
            )
            yield self.plan.event(SystemNoteEvent, 0, message=note)
        if self._journal is not None and acts(self.registrations):
            yield Commit(
                0
            )  # the inputs as they are before any code: what acts on the world commits in an action
        return (yield from self._first_turns())

    def _first_turns(self) -> Loop[Any]:
        if self._runner is not None:
            ending = yield from consulted(self.plan, self._runner)
            if ending is not None:
                return ending.value
        if self._unasked is not None:
            raise self._unasked
        if self._solution is not None and self._solution.note:
            yield self.plan.event(SystemNoteEvent, 0, message=self._solution.note)
        shown = (yield from self._set_up(self.definition.setup)) if self.definition.setup else ""
        self._talk = self._kept(Talk(self._conversation(shown), self._successor), shown)
        return (yield from solve(self.plan, self._talk, self.ledger))

    def _kept(self, talk: Talk, shown: str) -> Talk:
        """Let the journal take note of a conversation, and of those with further models."""
        if self._journal is None:
            return talk
        first = talk.conversation
        self._journal.opened(first.opening if isinstance(first, FullConversation) else (), shown)
        return noted(talk, self._journal)

    def _resumed(self, saved: Saved) -> Loop[Any]:
        """Go on where the state says that the run is."""
        record, journal = saved.record, self._journal
        assert journal is not None
        events = () if self.state is None else self.state.events
        self.call.events[:0] = [event for event in events if event.run_id == record.run_id]
        last_turn = record.last_turn
        if self._answer is not None and self._answer.text:
            last_turn = record.turn + self.plan.max_iterations
        journal.take(self._answer, last_turn=last_turn, branch=getattr(self.state, "branch", ""))
        if record.setup_shown is None or is_consulting(saved.progress):
            return (yield from self._first_turns())
        first = self._conversation(record.setup_shown)
        if isinstance(first, FullConversation) and saved.opening:
            first.reopen(saved.opening)
        talk = Talk(first, self._successor)
        replay(talk, self.plan, saved.exchanges)
        if self._answer is not None and self._answer.text:
            yield self.plan.event(SystemNoteEvent, record.turn, message=f"{ANSWERED}{self._answer.text}")
            talk.conversation.answered(self._answer.text)
        self._talk = noted(talk, journal)
        progress = saved.progress
        if progress is not None and progress.turn == 0:  # kept code, which is tried first
            (action,) = progress.reply.actions
            assert isinstance(action, PythonAction)
            plan = replace(self.plan, kept_code=action.code)
            return (yield from solve(plan, self._talk, self.ledger, last_turn=last_turn))
        turn = len(saved.exchanges)
        return (
            yield from solve(
                replace(self.plan, kept_code=None),
                self._talk,
                self.ledger,
                turn=turn,
                last_turn=last_turn,
                progress=progress,
            )
        )

    def _set_up(self, setup: str) -> Loop[str]:
        """Run the setup code; return what it showed."""
        seen: Observation = yield Execute(PythonAction(code=setup), 0)
        yield self.plan.event(OutputEvent, 0, text=seen.text, error=seen.failed, seconds=seen.seconds)
        if seen.files:
            yield self.plan.event(FileEvent, 0, **seen.files)
        if self._journal is not None:
            self._journal.set_up(seen.text)
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
            cached=self._cached(),
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

    def _cached(self) -> tuple[Any, ...]:
        """Return the keys of the cache; none where its content is a worker's, or cannot be read."""
        if self.call.view is None or self._session.packs:
            return ()
        cache = self.call.view.cache
        return tuple(cache) if type(cache) is dict else ()

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
