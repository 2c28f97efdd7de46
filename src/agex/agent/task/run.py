"""One task call: its record, while it lasts and when it is over."""

# The functions below the class are the run's own, as its methods are.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agex.agent.call.events import ActionEvent, Event, OutputEvent
from agex.agent.call.log_lines import log_end
from agex.agent.durable.host_calls import Decision, HostCall
from agex.display import Shown
from agex.errors import DefinitionError, TaskClarify, TaskSuspended
from agex.models import PythonAction
from agex.models.base import Usage

if TYPE_CHECKING:
    from agex.agent.call.call import Call
    from agex.agent.task.replays import Replay
    from agex.display import Page

__all__ = [
    "Outcome",
    "Resume",
    "Run",
    "close",
    "code_blocks",
    "let_replay",
    "own_function",
    "reopen",
    "restore",
]

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a call, or its state so far."""

    value: Any = None
    code: str | None = None
    error: BaseException | None = None
    events: tuple[Event, ...] = ()
    usage: Usage = field(default_factory=Usage)
    commit: str | None = None
    duration: float = 0.0
    sample: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resume:
    """How a call that waits for an answer, or for approval, goes on."""

    sync: Callable[[Decision], None]
    asynchronous: Callable[[Decision], Awaitable[None]]


class Run(Shown, Generic[R]):
    """The record of one task call: its value, its events and what it took.

    ``task.run(...)`` returns one that is over; a task that ends without a value raises an error
    that carries one, with every event up to the end. ``task.start(...)`` returns one that has only
    begun: iterate over it for its events as they happen (``for`` or ``async for``), wait for its
    value with :meth:`result` or ``await``, or :meth:`cancel` it.

    Attributes:
        run_id: marks the events of this call; those of the tasks it called carry their own.
        agent: the agent's name.
        task: the task's name.
        state: the state it ran with, or None.
        samples: the run of each sample, in order; empty for a task that has one.
    """

    def __init__(self, *, run_id: str, agent: str, task: str, state: Any, call: Call | None) -> None:
        self.run_id = run_id
        self.agent = agent
        self.task = task
        self.state = state
        self._call = call
        self._record = Outcome()
        self._over = threading.Event()
        self._resume: Resume | None = None
        self.samples: tuple[Run[R], ...] = ()
        self._replaying: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        from agex.agent.task.pages import run_facts

        return f"<agex run {self.agent}.{self.task}: {', '.join(run_facts(self))}>"

    def page(self) -> Page:
        from agex.agent.task.pages import run_page

        return run_page(self)

    # -- what it came to ---------------------------------------------------------------------

    @property
    def value(self) -> R | None:
        """The checked result; None for a run without one, or not yet."""
        return self._record.value  # type: ignore[no-any-return]

    @property
    def code(self) -> str | None:
        """The Python that the run came to.

        Where defining the task's own function was the end, the source of that function with what it needs;
        else the code of all turns, in order, without the actions that failed. None where nothing ran.
        """
        chosen = next((each for each in self.samples if each.sample == self.sample), None)
        if chosen is not None:
            return chosen.code
        return own_function(self) or "\n\n".join(code_blocks(self)) or None

    @property
    def error(self) -> BaseException | None:
        """Why there is no value."""
        return self._record.error

    @property
    def sample(self) -> int | None:
        """Which sample it took its value, or its error, of; None for a task that has no samples."""
        return self._record.sample

    @property
    def ok(self) -> bool:
        """Whether the task ended with a value."""
        return self.done() and self.error is None

    @property
    def events(self) -> tuple[Event, ...]:
        """In the order they happened, those of called tasks included."""
        return self._so_far().events

    @property
    def usage(self) -> Usage:
        """Of this call and of all tasks it called."""
        return self._so_far().usage

    @property
    def usage_by_model(self) -> dict[str, Usage]:
        """Of the answers of each model, by ``"provider:name"``; requests without an answer are not in it."""
        found: dict[str, Usage] = {}
        for event in self.events:
            if isinstance(event, ActionEvent):
                found[event.model] = found.get(event.model, Usage()) + event.usage
        return found

    @property
    def cost(self) -> float | None:
        """US dollars; None when a price is unknown."""
        return self.usage.cost

    @property
    def commit(self) -> str | None:
        """The last commit of this run, where the state has commits."""
        return self._so_far().commit

    @property
    def duration(self) -> float:
        """Wall seconds."""
        return self._so_far().duration

    @property
    def turns(self) -> int:
        """How many turns the task's own model took; in the sample that was chosen, where there are some."""
        own = (event for event in self.events if event.run_id == self.run_id)
        return max((event.turn for event in own if self.sample in (None, event.sample)), default=0)

    def _so_far(self) -> Outcome:
        call = self._call
        if call is None:
            return self._record
        return Outcome(
            events=tuple(call.events),
            usage=call.ledger.used,
            commit=call.commit,
            duration=call.ledger.seconds,
        )

    # -- while it lasts ----------------------------------------------------------------------

    def done(self) -> bool:
        """Return whether it is over."""
        return self._over.is_set()

    def result(self, timeout: float | None = None) -> R:
        """Wait until it is over; return the value.

        Args:
            timeout: seconds; None for as long as it takes.

        Raises:
            TimeoutError: it is not over yet; it goes on.
            TaskError: the task ended without a value; see :mod:`agex.errors`.
        """
        if not self._over.wait(timeout):
            raise TimeoutError(f"{self!r} is not over after {timeout:g} s; it goes on. cancel() ends it.")
        return self._outcome()

    def __await__(self) -> Generator[Any, None, R]:
        """Wait without blocking the event loop; return the value or raise what ended the task."""
        return self._awaited().__await__()

    async def _awaited(self) -> R:
        async for _ in self:
            pass
        return self._outcome()

    def _outcome(self) -> R:
        if self.error is not None:
            raise self.error
        return self._record.value  # type: ignore[no-any-return]

    def cancel(self) -> bool:
        """End it as soon as may be: a request is given up, a running action stopped.

        What was committed stays. The run then ends with ``TaskCancelled``.

        Returns:
            False where it was over already.
        """
        call = self._call
        return call is not None and not self.done() and call.withdraw()

    def __iter__(self) -> Iterator[Event]:
        """Yield its events as they happen, until it is over."""
        news = threading.Event()
        seen = 0
        with self._watched(news.set):
            while True:
                news.clear()
                over, events = self.done(), self.events
                yield from events[seen:]
                seen = len(events)
                if over:
                    return
                news.wait()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield its events as they happen, until it is over, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        news = asyncio.Event()
        seen = 0
        with self._watched(lambda: loop.call_soon_threadsafe(news.set)):
            while True:
                news.clear()
                over, events = self.done(), self.events
                for event in events[seen:]:
                    yield event
                seen = len(events)
                if over:
                    return
                await news.wait()

    @contextmanager
    def _watched(self, tell: Callable[[], object]) -> Iterator[None]:
        """Call *tell* at each event and at the end, meanwhile."""
        call = self._call
        if call is None:
            yield
            return
        call.watchers.append(tell)
        try:
            yield
        finally:
            call.watchers.remove(tell)

    # -- after a question --------------------------------------------------------------------

    def answer(self, text: str) -> Run[R]:
        """Answer what ``task_clarify`` asked; the task goes on where it stopped, in as many turns again.

        Returns:
            This run, with a value.

        Raises:
            TaskError: the task ended without a value again.
            RuntimeError: the run did not end with a question.
        """
        return self._decided(Decision(kind="answer", text=text))

    async def aanswer(self, text: str) -> Run[R]:
        """Like :meth:`answer`, without blocking the event loop; for async tasks."""
        return await self._adecided(Decision(kind="answer", text=text))

    def replay(self, model: Any = None, *, inputs: Mapping[str, Any] | None = None) -> Replay:
        """Run it again from its beginning, over a branch of its own, and compare.

        The model's answers and the results of external functions are those that the state has. Other
        functions and live objects are called again, and so are the models of tasks that its code calls.

        Args:
            model: is asked in the place of the recorded answers.
            inputs: in the place of those that the state could not keep.

        Raises:
            DefinitionError: it has no ``Versioned`` state, or an input is missing.
            StateError: the state does not have it.
        """
        replay: Replay = self._new_replay(model, inputs).run()
        return replay

    async def areplay(self, model: Any = None, *, inputs: Mapping[str, Any] | None = None) -> Replay:
        """Like :meth:`replay`, without blocking the event loop."""
        replay: Replay = await self._new_replay(model, inputs).arun()
        return replay

    def _new_replay(self, model: Any, inputs: Mapping[str, Any] | None) -> Any:
        if self._replaying is None:
            raise DefinitionError("This run cannot be replayed: it has samples, or its task is not here.")
        return self._replaying(self.state, self.run_id, model, inputs)

    @property
    def call(self) -> HostCall | None:
        """The call that waits for approval, if one does."""
        return self.error.call if isinstance(self.error, TaskSuspended) else None

    def approve(
        self, arguments: Mapping[str, Any] | None = None, *, call: HostCall | str | None = None
    ) -> Run[R]:
        """Let the call be made that waits; the run goes on, with its action from the beginning.

        Args:
            arguments: replace some of the call's own, by the names of the function's parameters.
            call: the call that is meant, or its id; another one is refused.

        Returns:
            This run, with a value.

        Raises:
            TaskSuspended: another call waits for approval.
            TaskError: the task ended without a value.
            DefinitionError: the function has no such argument, or another call is meant.
            StateConflict: somebody else carries the run on.
            RuntimeError: no call waits here, or it was decided already.
        """
        return self._decided(Decision(kind="approve", arguments=arguments, call=_id_of(call)))

    def reject(self, reason: str = "", *, call: HostCall | str | None = None) -> Run[R]:
        """Let the call not be made: it raises `CallRejected` with the reason in the agent's code."""
        return self._decided(Decision(kind="reject", text=reason, call=_id_of(call)))

    async def aapprove(
        self, arguments: Mapping[str, Any] | None = None, *, call: HostCall | str | None = None
    ) -> Run[R]:
        """Like :meth:`approve`, without blocking the event loop; for async tasks."""
        return await self._adecided(Decision(kind="approve", arguments=arguments, call=_id_of(call)))

    async def areject(self, reason: str = "", *, call: HostCall | str | None = None) -> Run[R]:
        """Like :meth:`reject`, without blocking the event loop; for async tasks."""
        return await self._adecided(Decision(kind="reject", text=reason, call=_id_of(call)))

    def _decided(self, decision: Decision) -> Run[R]:
        resume = self._taken_resume(decision)
        try:
            resume.sync(decision)
        except DefinitionError:
            self._resume = self._resume or resume  # it was refused, and nothing done
            raise
        return self

    async def _adecided(self, decision: Decision) -> Run[R]:
        resume = self._taken_resume(decision)
        try:
            await resume.asynchronous(decision)
        except DefinitionError:
            self._resume = self._resume or resume
            raise
        return self

    def _taken_resume(self, decision: Decision) -> Resume:
        waits = TaskClarify if decision.kind == "answer" else TaskSuspended
        wanted = "answer" if decision.kind == "answer" else "approval"
        resume = self._resume
        if resume is None or not isinstance(self.error, waits):
            decided = "it was given already" if resume is None and isinstance(self.error, waits) else ""
            raise RuntimeError(f"{self!r} waits for no {wanted}" + (f": {decided}" if decided else ""))
        self._resume = None
        return resume


# -- told by who carries the call out: functions, so that a run offers users what is theirs ----------------


def own_function(run: Run[Any]) -> str | None:
    """Return the source of the task's own function with what it needs, where defining it was the end."""
    return run._record.code


def code_blocks(run: Run[Any]) -> Iterator[str]:
    """Yield the code of the run's turns, in order, without the actions that failed."""
    mine = [event for event in run.events if event.run_id == run.run_id]
    for acted in mine:
        if isinstance(acted, ActionEvent):
            shown = [each for each in mine if isinstance(each, OutputEvent) and each.turn == acted.turn]
            # The action that ends a task shows nothing, and none runs after one that failed.
            failed = [each.error for each in shown] or [False]
            for action, is_failed in itertools.zip_longest(acted.actions, failed, fillvalue=any(failed)):
                if isinstance(action, PythonAction) and not is_failed:
                    yield action.code.strip()


def let_replay(run: Run[Any], replaying: Callable[..., Any]) -> None:
    """Let a run be replayed: *replaying* begins that, see :meth:`Run.replay`."""
    run._replaying = replaying


def reopen(run: Run[Any], call: Call) -> None:
    """Take note that the call goes on."""
    run._record = Outcome()
    run._call = call
    run._over.clear()


def close(
    run: Run[Any], *, value: Any = None, code: str | None = None, error: BaseException | None = None,
    resume: Resume | None = None, sample: int | None = None,
) -> None:  # fmt: skip
    """Take note that the call is over, and let go of it."""
    call = run._call
    assert call is not None
    so_far = run._so_far()
    run._record = Outcome(
        value=value,
        code=code,
        error=error,
        events=so_far.events,
        usage=so_far.usage,
        commit=so_far.commit,
        duration=so_far.duration,
        sample=sample,
    )
    run._resume = resume
    run._call = None
    run._over.set()
    used = f"{run.turns} turns, {run.usage.requests} requests, {run.usage.tokens} tokens"
    log_end((run.agent, run.task, run.run_id), error, run.duration, used)
    for tell in tuple(call.watchers):
        tell()


def restore(run: Run[Any], record: Outcome, resume: Resume | None) -> None:
    """Make a run what a state has of it: it is over or waits."""
    run._record = record
    run._resume = resume
    run._over.set()


def _id_of(call: HostCall | str | None) -> str | None:
    return call.id if isinstance(call, HostCall) else call
