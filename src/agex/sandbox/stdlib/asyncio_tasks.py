"""Tasks of ``asyncio`` made by guest code, and their end with the run.

The real functions accept any object that claims to be a future, and ask it for its event loop. That loop then
calls the waiting code in the host's context, which holds the sandbox's own variables. And a task runs in the
host's loop for as long as it likes. So a guest task is recorded here when it is made, and ended with its run,
while the limits of the run still hold.
"""

from __future__ import annotations

import collections.abc
import contextvars
import functools
import inspect
import math
import sys
import types
import weakref
from collections.abc import Awaitable, Callable, Generator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxTypeError
from agex.sandbox.classes.errors import check_keywords
from agex.sandbox.patches import methods
from agex.sandbox.runtime.asyncio_cleanup import closed_by, no_exit, retrieve_exception
from agex.sandbox.runtime.context import CURRENT, take_over
from agex.sandbox.runtime.limits import Stop
from agex.sandbox.runtime.provenance import session_in

if TYPE_CHECKING:
    import asyncio
    from typing import Self

    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["ASYNCIO", "end_tasks", "is_coroutine", "late_members", "run_apart"]

_made: weakref.WeakKeyDictionary[Membrane, weakref.WeakSet[Any]] = weakref.WeakKeyDictionary()
"""The tasks that guest code made, by the guards of its session."""


_within: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
"""The coroutines of guest code, by the coroutines of this module that step them."""


def _noted(task: Any) -> Any:
    """Record a task that guest code made."""
    import asyncio

    guards = CURRENT.get()
    if guards is not None:
        _made.setdefault(guards, weakref.WeakSet()).add(task)
    task.add_done_callback(retrieve_exception)
    inner = _within.get(task.get_coro()) if isinstance(task, asyncio.Task) else None
    if inner is not None:
        task.add_done_callback(functools.partial(_close, inner))
    return task


def _close(coro: Any, task: object) -> None:
    """Close a coroutine whose task was cancelled before it began, and which was never awaited."""
    coro.close()


def _task(awaitable: Any) -> Any:
    """Return a real task or future of ``asyncio`` for an awaitable of guest code."""
    import asyncio  # takes longer than the rest of this room; a guest that is here has imported it

    native = _native(awaitable, asyncio.Future)
    is_future = isinstance(native, asyncio.Future)
    return native if is_future else _noted(asyncio.ensure_future(_coroutine(native)))


def _native(awaitable: Any, future: type) -> Any:
    """Return the awaitable, or a native coroutine around an object that could pose as a future."""
    class_ = type(awaitable)
    if class_ is types.CoroutineType or issubclass(class_, future):
        return awaitable
    if not inspect.isawaitable(awaitable):
        raise TypeError("An asyncio.Future, a coroutine or an awaitable is required")
    return _awaited(awaitable)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def is_coroutine(obj: Any) -> bool:
    """Return what ``asyncio.iscoroutine`` returns, without its cache, which keeps each class for good."""
    return isinstance(obj, _COROUTINES)


_COROUTINES: tuple[type, ...] = (types.CoroutineType, collections.abc.Coroutine)
if sys.version_info < (3, 12):
    _COROUTINES += (types.GeneratorType,)


def _coroutine(coro: Any) -> Any:
    """Return a native coroutine that steps the given one; anything else as it is."""
    if not is_coroutine(coro):
        return coro
    native: Any = coro if type(coro) is types.CoroutineType else _awaited(coro)
    made: Any = _of_task(CURRENT.get(), native)
    made.__name__, made.__qualname__ = native.__name__, native.__qualname__
    _within[made] = native
    return made


async def _of_task(guards: Membrane | None, coro: Any) -> Any:
    with no_exit():
        return await _stepped(guards, coro)


@types.coroutine
def _stepped(guards: Membrane | None, coro: Any) -> Generator[Any, Any, Any]:
    """Step a coroutine. Once it goes on after a cancellation with its time over, raise `Stop` in it.

    ``asyncio.Condition.wait`` retries for its lock in spite of every cancellation.
    """
    import asyncio

    step, given, was_cancelled = coro.send, None, False
    while True:
        if guards is not None:
            guards.hooks.go_on()
        try:
            waited = step(given)
        except StopIteration as done:
            return done.value
        finally:
            if guards is not None:
                guards.hooks.wait(guards.classes.made())
        try:
            given = yield waited
            step = coro.send
        except GeneratorExit:  # it is dropped, as it may be where a limit struck in the event loop
            coro.close()
            raise
        except BaseException as error:  # noqa: BLE001 - handed on
            step, given = coro.throw, error
            if type(error) is asyncio.CancelledError and guards is not None and guards.switch.is_on:
                given = Stop() if was_cancelled else error
                was_cancelled = True


def ensure_future(coro_or_future: Any) -> Any:
    """Do what ``asyncio.ensure_future`` does."""
    return _task(coro_or_future)


def gather(*coros_or_futures: Any, return_exceptions: bool = False) -> Any:
    """Do what ``asyncio.gather`` does."""
    import asyncio

    tasks: dict[int, Any] = {}
    for each in coros_or_futures:  # one given twice is run once, and its result stands twice
        if id(each) not in tasks:
            tasks[id(each)] = _task(each)
    given = [tasks[id(each)] for each in coros_or_futures]
    return _noted(asyncio.gather(*given, return_exceptions=bool(return_exceptions)))


def create_task(coro: Any, *, name: Any = None, **options: Any) -> Any:
    """Do what ``asyncio.create_task`` does."""
    import asyncio

    return _noted(asyncio.create_task(_coroutine(coro), name=name, **_checked(options)))


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse a context of another class: the event loop would call its ``run`` in the host's context."""
    check_keywords(options)
    context = options.get("context")
    if context is not None and type(context) is not contextvars.Context:
        raise SandboxTypeError(f"a task needs a contextvars.Context, got {type(context).__name__}")
    return options


async def sleep(delay: Any, result: Any = None) -> Any:
    """Do what ``asyncio.sleep`` does."""
    import asyncio

    return await asyncio.sleep(seconds(delay), result)


def timeout(delay: Any) -> Any:
    """Do what ``asyncio.timeout`` does."""
    import asyncio

    return asyncio.timeout(seconds(delay))


async def wait(fs: Any, *, timeout: Any = None, return_when: Any = "ALL_COMPLETED") -> Any:  # noqa: ASYNC109
    """Do what ``asyncio.wait`` does."""
    import asyncio

    return await asyncio.wait(fs, timeout=seconds(timeout), return_when=return_when)


async def wait_for(fut: Any, timeout: Any) -> Any:  # noqa: ASYNC109 - the parameter that it has
    """Do what ``asyncio.wait_for`` does."""
    import asyncio

    makes_a_task = sys.version_info < (3, 12)
    native = _task(fut) if makes_a_task else _native(fut, asyncio.Future)
    return await asyncio.wait_for(native, seconds(timeout))


def seconds(given: Any) -> Any:
    """Return a time as a plain number, because the host's event loop compares it with its own times.

    A subclass of a number would run guest code there, and NaN has no order.
    """
    if given is None or type(given) is int:
        return given
    plain = given if type(given) is float else math.ldexp(given, 0)  # which takes no text, as float() does
    if math.isnan(plain):
        raise ValueError("Invalid delay: NaN (not a number)")
    return plain


def as_completed(fs: Any, *, timeout: Any = None) -> Any:
    """Do what ``asyncio.as_completed`` does."""
    import asyncio

    if isinstance(fs, asyncio.Future) or is_coroutine(fs):
        raise TypeError(f"expect an iterable of futures, not {type(fs).__name__}")
    given = {id(each): each for each in fs}
    return asyncio.as_completed([_task(each) for each in given.values()], timeout=seconds(timeout))


def run(main: Any, *, debug: Any = None, loop_factory: Any = None) -> Any:
    """Do what ``asyncio.run`` does: run a coroutine in an event loop of its own."""
    import asyncio

    if asyncio._get_running_loop() is not None:
        if type(main) is types.CoroutineType:
            main.close()
        raise RuntimeError(
            "asyncio.run() cannot be called from a running event loop; write await main() here"
        )
    if not is_coroutine(main):
        raise ValueError(f"a coroutine was expected, got {type(main).__name__}")
    guards = CURRENT.get()
    session: Any = None if guards is None else session_in(guards.builtins)
    if session is None:
        raise SandboxTypeError("asyncio.run() is for code that runs in the sandbox, not after it")
    return session.run_coroutine(main if type(main) is types.CoroutineType else _awaited(main))


class _Loop:
    """An event loop for guest code that makes its own: each call is one of `run`."""

    __slots__ = ("_is_closed",)
    __module__ = "asyncio"

    def __init__(self) -> None:
        self._is_closed = False

    def run_until_complete(self, future: Any) -> Any:
        """Run a coroutine to its end."""
        if self._is_closed:
            raise RuntimeError("Event loop is closed")
        return run(future)

    def is_running(self) -> bool:
        """Return False: inside of a coroutine there is another loop."""
        return False

    def is_closed(self) -> bool:
        """Return whether it was closed."""
        return self._is_closed

    def close(self) -> None:
        """Refuse further calls."""
        self._is_closed = True


class _Runner(_Loop):
    """``asyncio.Runner``: each call is one of `run`."""

    __slots__ = ()
    __module__ = "asyncio"

    def __init__(self, *, debug: Any = None, loop_factory: Any = None) -> None:
        super().__init__()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def run(self, coro: Any, *, context: Any = None) -> Any:
        """Run a coroutine to its end."""
        return self.run_until_complete(coro)


def _new_event_loop() -> _Loop:
    return _Loop()


def _get_event_loop() -> _Loop:
    import asyncio

    if asyncio._get_running_loop() is not None:
        raise SandboxTypeError("the running loop belongs to the host; use asyncio.create_task() and await")
    return _Loop()


def _set_event_loop(loop: Any) -> None:
    """Do nothing: each loop of guest code is used by its own methods."""


async def to_thread(func: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function; there is one thread, so the call is over before another task goes on."""
    check_keywords(kwargs)
    return func(*args, **kwargs)


ASYNCIO: dict[str, Any] = {
    "Runner": _Runner,
    "get_event_loop": _get_event_loop,
    "new_event_loop": _new_event_loop,
    "run": run,
    "set_event_loop": _set_event_loop,
    "to_thread": to_thread,
    "as_completed": as_completed,
    "create_task": create_task,
    "ensure_future": ensure_future,
    "gather": gather,
    "sleep": sleep,
    "timeout": timeout,
    "wait": wait,
    "wait_for": wait_for,
}
"""The members of ``asyncio`` that are guarded."""


@functools.cache
def late_members() -> dict[str, Any]:
    """Return the members that can be made only once ``asyncio`` is imported."""
    import asyncio

    def create_task(self: Any, coro: Any, **options: Any) -> Any:
        """Do what the method of ``asyncio.TaskGroup`` does."""
        return _noted(real(self, _coroutine(coro), **_checked(options)))

    own = {name: getattr(value, "__wrapped__", value) for name, value in vars(asyncio.TaskGroup).items()}
    real = own["create_task"]
    _reschedule_by_numbers(asyncio.Timeout)
    # These store the host's loop or task in self, or make that loop call what self holds.
    methods.hold(asyncio.Timeout, "__aenter__", "__aexit__")
    methods.hold(asyncio.TaskGroup, *_OF_GROUPS)
    methods.hold(asyncio.Event, "clear", "set")
    methods.hold(asyncio.Lock, "acquire", "release")
    methods.hold(asyncio.Queue, "put_nowait", "task_done")
    if sys.version_info >= (3, 13):
        methods.hold(asyncio.Queue, "shutdown")
    methods.hold(asyncio.Semaphore, "acquire", "release")
    methods.hold(asyncio.BoundedSemaphore, "release")
    namespace = {name: value for name, value in own.items() if name not in {"__dict__", "__weakref__"}}
    # Without the real class as a base, from which guest code could derive. It holds the host's loop: a guest
    # class derived from this one is treated as derived from a host class.
    task_group = type("TaskGroup", (), {**namespace, "create_task": create_task})
    methods.hold(task_group, *_OF_GROUPS)
    return {"TaskGroup": task_group}


_OF_GROUPS = ("__aenter__", "__aexit__", "create_task")


def _reschedule_by_numbers(timeout: Any) -> None:
    """Make ``asyncio.Timeout.reschedule`` take plain numbers, once a process: guests hold real timeouts."""
    methods.hold(timeout, "reschedule")
    real = timeout.reschedule

    @functools.wraps(real)
    def reschedule(self: Any, when: Any) -> None:
        real(self, seconds(when))

    timeout.reschedule = reschedule


_CLEANING = 1.0
"""Seconds in which a program cancelled at its time limit may tidy up, host functions included."""
_REPEAT = 0.05
"""Seconds until it is cancelled again after that."""


async def run_apart(
    guards: Membrane,
    work: Callable[[], Awaitable[None]],
    seconds: float | None,
    expire: Callable[[], None],
) -> None:
    """Run a guest program in a task of its own, which is cancelled when its time is over.

    Between its steps the event loop is free, and the hooks are shut.

    A timeout or task group that guest code enters and never leaves cancels the task in which it was entered,
    at any later time. That task is never the host's.

    If the host cancels, the program may tidy up for as long as at its time limit, even if it catches the
    error.
    """
    import asyncio

    raised: list[BaseException] = []

    async def guest() -> None:
        try:
            await _stepped(guards, work())
        except BaseException as error:  # noqa: BLE001 - some kinds would end the event loop
            raised.append(error)

    loop, context = asyncio.get_running_loop(), copy_context()
    task = asyncio.create_task(guest(), context=context)
    striker = _Striker(loop, task, expire)
    if seconds is not None:
        striker.strike_in(seconds, _CLEANING)
    try:
        cancelled = await _done(task, striker)
    finally:
        striker.end()
    # A decimal context, for example, or variables set by a host function. Not in a coroutine that is dropped:
    # that may happen in a host context, which would take over the guest's values.
    take_over(context)
    if cancelled is not None:
        raise cancelled
    if raised:
        raise raised.pop()
    task.result()  # raises where it was cancelled before it began


async def _done(task: asyncio.Task[None], striker: _Striker) -> asyncio.CancelledError | None:
    """Wait until a task is done, and return the cancellation of the present task meanwhile, if any."""
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))  # awaited itself, it would be cancelled in place of the present one
        except asyncio.CancelledError as error:
            task.cancel()
            if cancelled is None:
                striker.strike_in(_CLEANING, _REPEAT)
            cancelled = error
    return cancelled


class _Striker:
    """Cancels a task when its time is over, and again until it is done."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[None], expire: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._task = task
        self._expire = expire
        self._timer: asyncio.TimerHandle | None = None

    def strike_in(self, seconds: float, again: float) -> None:
        """Cancel the task after *seconds*, and again *again* seconds later."""
        self.end()
        self._timer = self._loop.call_later(seconds, self._strike, again)

    def _strike(self, again: float) -> None:
        self._expire()
        self._task.cancel()
        self.strike_in(again, _REPEAT)

    def end(self) -> None:
        """Cancel no more."""
        if self._timer is not None:
            self._timer.cancel()


_SOFT_TURNS = 20
"""Turns of the event loop in which a cancelled task may tidy up: a ``finally`` with a few awaits."""
_HARD_TURNS = 20
"""Turns in which it is cancelled again, and stop checks end code that catches the cancellation."""
_LAST_TURNS = 3
"""Turns for the callbacks of a task that is done, and for code that waits for several tasks."""


async def end_tasks(guards: Membrane) -> None:
    """End the tasks that guest code left in the event loop, while the clock of its run is still on."""
    import asyncio

    await asyncio.sleep(0)  # a generator dropped just now is closed by a task that starts in the next turn
    if guards not in _made and not _left(guards):
        return
    was_on = guards.switch.is_on
    ended: weakref.WeakSet[Any] = weakref.WeakSet()
    quiet = 0
    try:
        for turn in range(_SOFT_TURNS + _HARD_TURNS):
            if turn == _SOFT_TURNS:
                guards.switch.turn_on()
            tasks = _left(guards)
            for task in tasks:
                if turn >= _SOFT_TURNS or (task not in ended and not closed_by(task.get_coro())):
                    task.cancel()
                ended.add(task)
            quiet = 0 if tasks else quiet + 1
            if quiet > _LAST_TURNS:
                break
            await asyncio.sleep(0)
    finally:
        if not was_on:
            guards.switch.turn_off()
        _made.pop(guards, None)
        for task in ended:
            if task.done():
                retrieve_exception(task)


def _left(guards: Membrane) -> list[Any]:
    """Return the unfinished tasks that guest code made, except the present one."""
    import asyncio

    known, present = _made.get(guards, ()), asyncio.current_task()
    return [
        task
        for task in asyncio.all_tasks()
        if task is not present and (task in known or _runs_code_of(guards, task.get_coro()))
    ]


def _runs_code_of(guards: Membrane, coro: Any) -> bool:
    """Return whether a coroutine is guest code. Only native types are asked: a guest class could lie."""
    frame: types.FrameType | None = None
    if type(coro) is types.CoroutineType:
        frame = coro.cr_frame
    elif type(coro) is types.GeneratorType:
        frame = coro.gi_frame
    elif (generator := closed_by(coro)) is not None:
        frame = generator.ag_frame
    return frame is not None and frame.f_builtins is guards.builtins
