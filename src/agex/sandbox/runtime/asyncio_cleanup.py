"""The end of what guest code leaves in an event loop: callbacks of futures, asynchronous generators.

Callbacks are called while their run is on, and not after. A coroutine that is stepped by hand yields a future
of asyncio. The event loop of the host calls its callbacks at any time, without a limit, and a callback may
add itself to the next future. Guest code removes its own callbacks only: a removal compares by ``==``, which
would call guest code on the callbacks of others.

An event loop closes a generator that is dropped in a task of its own, and those left when it ends itself. A
``finally`` that raises ``SystemExit`` there ends the loop of the host. So generators of guest code are closed
by a coroutine that lets no SystemExit out. The loop is not told of them: each is closed when it is dropped.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import types
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.runtime.deadline import RUNNING

if TYPE_CHECKING:
    import asyncio
    from contextvars import Context

    from agex.sandbox.runtime.membrane import Membrane

__all__ = [
    "Callback",
    "adding",
    "closed_by",
    "end_callbacks",
    "in_new_loop",
    "no_exit",
    "removing",
    "retrieve_exception",
    "watch_generators",
]  # fmt: skip


def in_new_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in an event loop of its own, in a thread that has none."""
    import asyncio

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(make())
    finally:
        loop.close()


T = TypeVar("T")


@contextlib.contextmanager
def no_exit() -> Iterator[None]:
    """Turn ``SystemExit`` into an ordinary error: an event loop in which it is raised ends at once."""
    try:
        yield
    except SystemExit as error:
        raise SandboxError(
            "SystemExit is not available to end a program; return or raise an Exception"
        ) from error


class Callback:
    """Stands for a callback of guest code."""

    __slots__ = ("__weakref__", "_function")

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function: Callable[[Any], object] | None = function

    def __call__(self, future: Any) -> None:
        if self._function is not None:
            with no_exit():
                self._function(future)

    def stands_for(self, function: object) -> bool:
        """Return whether it stands for *function*."""
        return bool(self._function == function)

    def __repr__(self) -> str:
        return repr(self._function)

    def end(self) -> None:
        """Never call the function again."""
        self._function = None


_HUNG = "callbacks"
"""The note of the guards that holds the callbacks of the present run."""


def adding(guards: Membrane, add: Callable[..., object]) -> Callable[..., None]:
    """Return ``add_done_callback`` of a future for guest code."""

    def add_done_callback(fn: Any, /, *, context: Context | None = None) -> None:
        from contextvars import Context

        if context is not None and type(context) is not Context:
            raise SandboxTypeError(f"a callback needs a contextvars.Context, got {type(context).__name__}")
        callback = Callback(fn)
        hung: list[weakref.ref[Callback]] = guards.notes.setdefault(_HUNG, [])
        hung.append(weakref.ref(callback))
        add(callback, **({} if context is None else {"context": context}))  # a thread's future takes none

    return add_done_callback


class _Named:
    """Equals the callbacks that stand for a function, among those of guest code."""

    __slots__ = ("_callbacks", "_function")

    def __init__(self, function: object, callbacks: list[Callback | None]) -> None:
        self._function = function
        self._callbacks = callbacks

    def __eq__(self, other: object) -> bool:
        return any(each is other and each.stands_for(self._function) for each in self._callbacks if each)

    __hash__ = None  # type: ignore[assignment]


def removing(guards: Membrane, remove: Callable[..., int]) -> Callable[..., int]:
    """Return ``remove_done_callback`` of a future for guest code."""

    def remove_done_callback(fn: Any, /) -> int:
        return remove(_Named(fn, [each() for each in guards.notes.get(_HUNG, ())]))

    return remove_done_callback


def end_callbacks(guards: Membrane) -> None:
    """End the callbacks of guest code: its run is over."""
    for each in guards.notes.get(_HUNG, ()):
        callback = each()
        if callback is not None:
            callback.end()
    guards.notes.pop(_HUNG, None)  # at last: cut short before, a second call ends the rest


# -- asynchronous generators ---------------------------------------------------------------------


Generator = types.AsyncGeneratorType[Any, Any]


def watch_generators() -> None:
    """Close dropped generators of guest code that way, as long as the event loop of this thread runs."""
    begun, dropped = sys.get_asyncgen_hooks()
    if begun is None or dropped is None or getattr(dropped, "func", None) is _dropped:
        return
    import asyncio  # loaded already: there is an event loop

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # an event loop of another library
        return
    sys.set_asyncgen_hooks(functools.partial(_begun, begun), functools.partial(_dropped, loop, dropped))


def _begun(tell: Callable[[Any], object], generator: Any) -> None:
    if not _is_guests(generator):
        tell(generator)


def _dropped(loop: asyncio.AbstractEventLoop, tell: Callable[[Any], object], generator: Any) -> None:
    if not _is_guests(generator):
        tell(generator)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(_close_in, loop, generator)  # a collection may come in any thread


def _is_guests(generator: Generator) -> bool:
    frame = generator.ag_frame
    return frame is not None and frame.f_builtins.get("stop!") is RUNNING


def _close_in(loop: asyncio.AbstractEventLoop, generator: Generator) -> None:
    loop.create_task(_close(generator)).add_done_callback(retrieve_exception)


def retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a task of guest code.

    Otherwise the event loop reports it when the task is dropped. In the midst of a run the log of the host
    cannot open its files.
    """
    if not task.cancelled():
        task.exception()


async def _close(generator: Generator) -> None:
    with no_exit():
        await generator.aclose()


def closed_by(coro: Any) -> Generator | None:
    """Return the asynchronous generator that the coroutine of a task closes; None for any other coroutine."""
    if type(coro) is types.CoroutineType and coro.cr_code is _close.__code__:
        return None if coro.cr_frame is None else coro.cr_frame.f_locals["generator"]
    if type(coro) is not _CLOSING:
        return None
    return next((each for each in gc.get_referents(coro) if type(each) is types.AsyncGeneratorType), None)


async def _generator() -> AsyncGenerator[None, None]:
    yield


_aclose = _generator().aclose()
_CLOSING: type = type(_aclose)
with contextlib.suppress(StopIteration):
    _aclose.send(None)  # else the interpreter warns that it was never awaited
