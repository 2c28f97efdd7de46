"""One task call: its record, while it lasts and when it is over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agex.agent.call.events import ActionEvent, Event
from agex.display import Shown
from agex.errors import TaskClarify
from agex.models.base import Usage

if TYPE_CHECKING:
    from agex.agent.call.call import Call
    from agex.display import Page

__all__ = ["Outcome", "Resume", "Run"]

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


@dataclass(frozen=True, kw_only=True)
class Resume:
    """How a call that ended with a question goes on."""

    sync: Callable[[str], None]
    asynchronous: Callable[[str], Awaitable[None]]


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
    """

    def __init__(self, *, run_id: str, agent: str, task: str, state: Any, call: Call) -> None:
        self.run_id = run_id
        self.agent = agent
        self.task = task
        self.state = state
        self._call: Call | None = call
        self._record = Outcome()
        self._over = threading.Event()
        self._resume: Resume | None = None

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
        """The source of the task's own function with what it needs, where defining it was the end."""
        return self._record.code

    @property
    def error(self) -> BaseException | None:
        """Why there is no value."""
        return self._record.error

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
        """How many turns the task's own model took."""
        return max((event.turn for event in self.events if event.run_id == self.run_id), default=0)

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
        self._taken_resume().sync(text)
        return self

    async def aanswer(self, text: str) -> Run[R]:
        """Like :meth:`answer`, without blocking the event loop; for async tasks."""
        await self._taken_resume().asynchronous(text)
        return self

    def _taken_resume(self) -> Resume:
        resume, self._resume = self._resume, None
        if resume is None:
            asked = "its question was answered already" if isinstance(self.error, TaskClarify) else ""
            raise RuntimeError(f"{self!r} waits for no answer" + (f": {asked}" if asked else ""))
        return resume

    # -- told by the invocation --------------------------------------------------------------

    def reopen(self, call: Call) -> None:
        """Take note that the call goes on."""
        self._record = Outcome()
        self._call = call
        self._over.clear()

    def close(
        self, *, value: Any = None, code: str | None = None, error: BaseException | None = None,
        resume: Resume | None = None,
    ) -> None:  # fmt: skip
        """Take note that the call is over, and let go of it."""
        call = self._call
        assert call is not None
        so_far = self._so_far()
        self._record = Outcome(
            value=value,
            code=code,
            error=error,
            events=so_far.events,
            usage=so_far.usage,
            commit=so_far.commit,
            duration=so_far.duration,
        )
        self._resume = resume
        self._call = None
        self._over.set()
        for tell in tuple(call.watchers):
            tell()
