"""One task call in progress: what it spends, what it records, who called it.

Calls form a tree, from a task to the tasks that its agent's code calls. The current call is
kept in a context variable, so a task finds its caller also through a host function.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from agex._interpreter.threads import off_loop
from agex.agent.call.budget import Budget, Ledger
from agex.agent.call.events import Event
from agex.agent.call.log_lines import log_event
from agex.errors import CheckError, DefinitionError, TaskCancelled
from agex.models.surrogates import Joined

if TYPE_CHECKING:
    from agex.isolation import GuestSession
    from agex.state import State
    from agex.state.working.view import View

__all__ = [
    "Call",
    "Gate",
    "Journal",
    "OnApproval",
    "OnEvent",
    "OnToken",
    "Token",
    "current_call",
    "driven",
    "host_time",
    "payer",
    "runs_on",
    "sharing",
    "too_deep",
]


class Token(str):
    """A piece of text as the model writes it, and where it comes from."""

    __slots__ = ("agent", "task", "turn")

    agent: str
    task: str
    turn: int

    def __new__(cls, text: str, *, agent: str, task: str, turn: int) -> Self:
        token = super().__new__(cls, text)
        token.agent, token.task, token.turn = agent, task, turn
        return token


OnEvent: TypeAlias = Callable[[Any], None] | Callable[[Any], Awaitable[None]]
"""Told each event as it happens; may be async in an async task."""
OnApproval: TypeAlias = Callable[[Any], Any]
"""Asked whether a `HostCall` may be made: answers True, False or the call with other arguments."""
Gate: TypeAlias = Callable[[bool], None]
"""Raises where a run must not go on here. It is told whether something begins, which a commit does not."""
OnToken: TypeAlias = Callable[[Token], None]
"""Told each piece of text, perhaps in another thread."""

MOST_FAULTS = 20
"""Errors of host functions that are reported of one action."""
MOST_NESTED = 50
"""Tasks in tasks: each takes a part of the interpreter's stack, which holds about sixty."""

_current: ContextVar[Call | None] = ContextVar("agex_call", default=None)


def current_call() -> Call | None:
    """Return the call that this code runs in, if any."""
    return _current.get()


_shared: ContextVar[tuple[Call | None, Ledger] | None] = ContextVar("agex_shared", default=None)
"""A ledger for the tasks called from some code, and the call that this code itself runs in."""


def payer() -> Ledger | None:
    """Return the ledger that a task called by this code is charged to, beside its own."""
    call, shared = current_call(), _shared.get()
    if shared is not None and shared[0] is call:
        return shared[1]
    return call.ledger if call is not None else None


@contextmanager
def sharing(budget: Budget | None = None) -> Iterator[Ledger]:
    """Charge all tasks that this code calls meanwhile to one ledger; their calls stay calls of their own.

    Threads are part of it that run in a copy of this context.
    """
    token = _shared.set((current_call(), ledger := Ledger(budget, parent=payer())))
    try:
        yield ledger
    finally:
        _shared.reset(token)
        ledger.pause()


def host_time(call: Call | None) -> AbstractContextManager[None]:
    """Stop the clock of a call's action while the host works, with the powers of the host."""
    session = call.session if call is not None else None
    return session.paused() if session is not None else nullcontext()


class Journal(Protocol):
    """The record of a run: it is told what the call does."""

    @property
    def is_durable(self) -> bool: ...

    def begin_action(self, action: Any, turn: int, progress: Any) -> None: ...

    def end_action(self) -> None: ...

    @property
    def made(self) -> int: ...

    def rewind(self, after: int = 0) -> bool: ...

    def made_calls(self) -> list[str]: ...

    def advance(self, turn: int, progress: Any) -> None: ...

    def stage(self) -> None: ...


class Call:
    """A task call, from its first event to its last.

    Attributes:
        events: all events of this call and of those below it, in order.
        ledger: what they spend.
        agent: whose task it is.
        session: where this call's code runs, once there is such a place.
        view: what it has of its state, from when it began.
        journal: the record of its run and of its calls to the world; None where a call above has it.
        gate: passed before each request, action, call to the world and commit of this call.
        tape: this run on the tape that is on; None for none.
        on_approval: answers whether a call to the world may be made.
        commit: the last commit of this call, where the state has commits.
        sample: which of the samples of the call above it is, from 1.
        has_samples: whether it runs no code itself, and those below it are its samples.
        loop: the event loop of an async task.
        watchers: called after each event, in whatever thread it happens.
        fault: the last error that a host function raised when this code or that of a task below called it.
        withdrawn: whether the caller has cancelled it.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        agent: object = None,
        parent: Call | None = None,
        state: State | None = None,
        on_event: OnEvent | None = None,
        on_token: OnToken | None = None,
        on_approval: OnApproval | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        sample: int | None = None,
        has_samples: bool = False,
    ) -> None:
        self.ledger = ledger
        self.agent = agent
        self.has_samples = has_samples
        self.sample: int | None = sample if sample is not None or parent is None else parent.sample
        self.parent = parent
        self.state = state
        self.on_event = on_event
        self.on_token = on_token
        self.on_approval = on_approval
        self.journal: Journal | None = None
        self.gate: Gate | None = None
        self.tape: Any = None
        self.loop = loop
        self.session: GuestSession | None = None
        self.view: View | None = None
        self.watchers: list[Callable[[], object]] = []
        self.fault: Exception | None = None
        self.withdrawn = False
        self.events: list[Event] = []
        self.commit: str | None = None
        self._faults: list[tuple[str, Exception]] = []
        self._late: list[Event] = []
        self._cancelled = threading.Event()
        self._on_cancel: list[Callable[[], object]] = []
        self._driver: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._below: list[Call] = []
        self._lock = threading.Lock()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make this the current call; its time does not count for the action of the caller."""
        token = _current.set(self)
        try:
            with self._known_to_parent(), host_time(self.parent):
                yield
        finally:
            _current.reset(token)

    @contextmanager
    def _known_to_parent(self) -> Iterator[None]:
        parent = self.parent
        if parent is None:
            yield
            return
        with parent._lock:
            parent._below.append(self)
        try:
            yield
        finally:
            with parent._lock:
                parent._below.remove(self)

    def driven_by(self, task: asyncio.Task[Any] | None) -> None:
        """Take note of the asyncio task that carries this call out; None for none any more."""
        with self._lock:
            self._driver = None if task is None else (task.get_loop(), task)

    def withdraw(self) -> bool:
        """End this call for its caller, from any thread; return False where nothing drives it any more."""
        with self._lock:
            if self._driver is None:
                return False
            self.withdrawn = True
            loop, task = self._driver
        loop.call_soon_threadsafe(task.cancel)
        return True

    def cancel(self, reason: BaseException) -> None:
        """End this call and those below it, from any thread, as soon as may be."""
        with self._lock:
            self._cancelled.set()
            below, told = list(self._below), list(self._on_cancel)
        for tell in told:
            tell()
        for call in below:
            call.cancel(reason)
        if self.session is not None:
            self.session.interrupt(reason)

    def check(self) -> None:
        """Go on, or raise TaskCancelled because the call above was cancelled."""
        if self._cancelled.is_set():
            raise TaskCancelled("The task that called this one was cancelled.")

    def pass_gate(self, *, begins: bool) -> None:
        """Go on, or raise what the gate says.

        The calls below are not asked: their error would be one for the code of this one.
        """
        if self.gate is not None:
            self.gate(begins)

    def wake(self) -> None:
        """Let who waits for an answer of a model look at the gate again, from any thread."""
        with self._lock:
            told = list(self._on_cancel)
        for tell in told:
            tell()

    @contextmanager
    def on_cancel(self, tell: Callable[[], object]) -> Iterator[None]:
        """Call *tell*, from any thread, when this call is cancelled meanwhile."""
        with self._lock:
            self._on_cancel.append(tell)
        try:
            yield
        finally:
            with self._lock:
                self._on_cancel.remove(tell)

    def wait(self, seconds: float) -> None:
        """Let some time pass; cancelling this call ends the wait."""
        self._cancelled.wait(seconds)

    def tell(self, event: Event) -> None:
        """Record *event* and call the handlers, here and up the tree."""
        for call in self._record(event):
            call._handle(event)

    async def atell(self, event: Event) -> None:
        """Like :meth:`tell`, awaiting async handlers."""
        for call in self._record(event):
            if call.loop is not asyncio.get_running_loop():
                call._handle(event)
                continue
            while call._late:
                await call._handle_here(call._late.pop(0))
            await call._handle_here(event)

    def note_fault(self, name: str, error: Exception) -> bool:
        """Note that the host function *name* raised *error* in this call; return whether it is reported.

        The first few of an action are: its code may call a function that fails as often as it likes.
        """
        for call in self._chain():
            call.fault = error
        is_told = len(self._faults) < MOST_FAULTS or isinstance(error, CheckError)
        if is_told:
            self._faults.append((name, error))
        return is_told

    def take_faults(self) -> list[tuple[str, Exception]]:
        """Return the faults noted since the last call of this method."""
        faults, self._faults = self._faults, []
        return faults

    def _record(self, event: Event) -> list[Call]:
        """Append *event* to every run and state above; return the calls with a handler."""
        log_event(event)
        states: list[State | None] = []
        for call in self._chain():
            call.events.append(event)
            for tell in tuple(call.watchers):
                tell()
            if call.view is not None and not any(call.state is state for state in states):
                call.view.record(event)
                states.append(call.state)
        return [call for call in self._chain() if call.on_event is not None]

    def begin_view(self) -> View | None:
        """Begin and return the view of the state that this call has; calls above it may share it."""
        if self.state is not None:
            above = (call.view for call in self._chain() if call is not self and call.state is self.state)
            self.view = self.state.view(next(above, None))
        return self.view

    def settle(self, message: str, *, last: bool = False) -> None:
        """Let the state keep what was done and recorded until now."""
        self.pass_gate(begins=False)
        if self.journal is not None and not last:
            self.journal.stage()
        if self.view is not None:
            self.commit = self.view.settle(message, last=last) or self.commit

    def leave(self) -> None:
        """Let the state know that nothing more comes of this call."""
        if self.view is not None:
            self.view.leave()

    def abandon(self) -> None:
        """Let the state drop what was done since its last commit: it is done again when the run goes on."""
        if self.view is not None and self.view.log is not None:
            self.view.log.abandon()
        else:
            self.leave()

    async def asettle(self, message: str, *, last: bool = False) -> None:
        """Like :meth:`settle`, without holding up the event loop."""
        if self.view is not None:
            await off_loop(lambda: self.settle(message, last=last))

    async def _handle_here(self, event: Event) -> None:
        answer = self.on_event(event) if self.on_event is not None else None
        if inspect.isawaitable(answer):
            await answer

    def _handle(self, event: Event) -> None:
        if self.loop is None or not inspect.iscoroutinefunction(self.on_event):
            if self.on_event is not None:
                self.on_event(event)
        elif runs_on(self.loop):
            self._late.append(event)  # waiting for our own loop would never end
        else:
            asyncio.run_coroutine_threadsafe(self._handle_here(event), self.loop).result()

    def tokens(self, agent: str, task: str, turn: int) -> Joined | None:
        """Return the callback for each piece of text of a model and its end; None if nobody listens."""
        listeners = [call.on_token for call in self._chain() if call.on_token is not None]
        if not listeners:
            return None

        def on_text(text: str) -> None:
            for listener in listeners:
                listener(Token(text, agent=agent, task=task, turn=turn))

        return Joined(on_text)

    def require_room(self) -> None:
        """Refuse a call in too many others, or raise nothing.

        Raises:
            DefinitionError: they are nested too deep. It is not for an agent's code, which would try again.
        """
        if self.depth >= MOST_NESTED:
            raise too_deep(f"more than {MOST_NESTED}")

    @property
    def depth(self) -> int:
        """How many calls are above this one."""
        return sum(1 for _ in self._chain()) - 1

    @property
    def caller(self) -> Call | None:
        """The call whose agent's code made this one; None where the host did."""
        above = (call for call in self._chain() if call is not self and not call.has_samples)
        return next(above, None)

    def above(self) -> Iterator[Call]:
        """Yield this call and those above it, from the inside out."""
        return self._chain()

    def _chain(self) -> Iterator[Call]:
        call: Call | None = self
        while call is not None:
            yield call
            call = call.parent


@contextmanager
def driven(call: Call, name: str) -> Iterator[None]:
    """Let a call be withdrawn while this asyncio task carries it out.

    A withdrawal is a ``TaskCancelled``, not asyncio's own.
    """
    task = asyncio.current_task()
    call.driven_by(task)
    try:
        yield
    except asyncio.CancelledError:
        if not call.withdrawn or task is None:
            raise
        task.uncancel()
        raise TaskCancelled(f"Task {name!r} was cancelled by its caller.") from None
    finally:
        call.driven_by(None)


def too_deep(count: str) -> DefinitionError:
    """Return the error of tasks that call each other without end."""
    return DefinitionError(
        f"Tasks are nested too deep: {count} call each other. Let the outer ones call the inner ones in turn."
    )


def runs_on(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether this code runs in a coroutine or callback of *loop*."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
