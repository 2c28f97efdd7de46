"""Host functions that need the task around them: async functions, and the tasks of other agents."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from agex._interpreter.threads import CAN_START, blocks_the_loop
from agex.agent.call.call import Call, runs_on, too_deep
from agex.agent.call.host_errors import HostFault, note_fault
from agex.agent.durable.external_functions import aexternal
from agex.agent.durable.stand_ins import originals
from agex.agent.prompt.listing import written_signature
from agex.agent.registration import Registration
from agex.errors import InputError, TaskError
from agex.sandbox.runtime.host_time import in_host_time

if TYPE_CHECKING:
    from agex.isolation import GuestSession

__all__ = ["bridged", "without_run"]

_Packed: TypeAlias = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
"""A function of arguments and keyword arguments, as a tuple and a mapping."""

_AT_ONCE = 32
"""Calls of a task that one ``map`` makes at a time."""

_ITEMS = 10_000
"""Items of one ``map``."""

POLL = 0.05
"""Seconds between two looks at whether the action was stopped while it waits for a coroutine."""


def bridged(one: Registration, session: GuestSession, call: Call) -> Callable[..., Any]:
    """Return the function that the agent's code gets for an async function or a task.

    Args:
        one: the registration.
        session: where the code runs.
        call: the call of the task that the code works on.

    In an async task an async function is called like a sync one and gives its result; only
    code that itself runs on the event loop, because it awaits, gets something to await.
    """
    function = _for_guest(one, session, call)
    shown = {"__name__": one.name, "__qualname__": one.name, "__doc__": one.doc, "is_async": one.is_async}
    for name, value in (*shown.items(), ("__signature__", written_signature(one.target))):
        setattr(function, name, value)
    if one.kind == "task":
        function.map = _fan_out(one, session, call)  # type: ignore[attr-defined]
    return function


def _for_guest(one: Registration, session: GuestSession, call: Call) -> Callable[..., Any]:
    if not one.is_async:
        return _guarded(one.target.call_from_agent, session)
    if call.loop is None:
        return _refusal(one.name)
    if one.kind == "task":
        return _guarded(_on_loop(one.name, one.target.call_from_agent, call, call.loop), session)
    return in_host_time(_unpacked(_on_loop(one.name, _with_permissions(one, session, call), call, call.loop)))


def _fan_out(one: Registration, session: GuestSession, call: Call) -> Callable[..., Any]:
    """Return ``NAME.map(items, max_workers=None)``: the task for each item, side by side, values in order.

    The first failure in that order is raised; calls not yet begun are dropped.
    """
    task = one.target.call_from_agent
    if one.is_async and call.loop is None:
        return _refusal(one.name)

    def together(items: tuple[Any, ...], options: Mapping[str, Any]) -> list[Any]:
        if not CAN_START:
            return [task((item,), {}) for item in items]
        with ThreadPoolExecutor(options["at_once"]) as pool:
            futures = [pool.submit(copy_context().run, task, (item,), {}) for item in items]
            try:
                return [_result(future, call) for future in futures]
            finally:
                for future in futures:
                    future.cancel()

    async def gathered(items: tuple[Any, ...], options: Mapping[str, Any]) -> list[Any]:
        gate = asyncio.Semaphore(options["at_once"])

        async def each(item: Any) -> Any:
            async with gate:
                return await task((item,), {})

        calls = [asyncio.ensure_future(each(item)) for item in items]
        try:
            return list(await asyncio.gather(*calls))
        finally:
            for unfinished in calls:
                unfinished.cancel()

    name = f"{one.name}.map"
    work = together if call.loop is None or not one.is_async else _on_loop(name, gathered, call, call.loop)
    guarded = _guarded(work, session)

    def map(items: Iterable[Any], max_workers: int = _AT_ONCE) -> Any:  # noqa: A001 - the guest's name for it
        if type(max_workers) is not int or max_workers < 1:
            raise ValueError("max_workers must be a whole number, 1 or more")
        return guarded(*_bounded(items), at_once=min(max_workers, _AT_ONCE))

    map.__qualname__ = name
    map.__doc__ = f"Call {one.name} with each item, side by side; return the values in order."
    return map


def _bounded(items: Iterable[Any]) -> list[Any]:
    """Return the items as a list: an iterator of guest code may have no end."""
    found = list(islice(items, _ITEMS + 1))
    if len(found) > _ITEMS:
        raise ValueError(f"map() takes at most {_ITEMS:,} items")
    return found


def _with_permissions(one: Registration, session: GuestSession, call: Call) -> _Packed:
    """Return the async function, with what it was granted open for its length, and ended at its limit.

    Its errors are noted.
    """
    from agex.sandbox.runtime import audit_hook

    async def arun(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        limit = asyncio.timeout(one.timeout)
        try:
            async with limit:
                with audit_hook.permitted(*one.permissions):
                    if one.external:
                        return await aexternal(one)(*args, **kwargs)
                    return await originals(one.target, args, kwargs)
        except Exception as error:
            if not limit.expired():
                note_fault(one.name, error, call)
                raise
        late = TimeoutError(f"{one.name}() took longer than its timeout of {one.timeout:g} s")
        session.interrupt(late)
        raise late

    return arun


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"'{name}' is an async function and cannot be called from a sync task.")

    return refuse


def _on_loop(name: str, function: _Packed, call: Call, loop: asyncio.AbstractEventLoop) -> _Packed:
    async def awaited(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return await function(args, kwargs)

    def bridge(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if blocks_the_loop():
            raise RuntimeError(
                f"'{name}' is async, and here is no thread to wait for it in. Write: await {name}(...)"
            )
        coroutine = awaited(args, kwargs)
        if runs_on(loop):
            return coroutine
        return _result(asyncio.run_coroutine_threadsafe(coroutine, loop), call)

    return bridge


def _result(future: Future[Any], call: Call) -> Any:
    """Wait for *future*; cancel it when the action is stopped meanwhile."""
    try:
        while not future.done():
            call.check()
            wait([future], timeout=POLL)
    finally:
        future.cancel()  # without effect on one that is done
    return future.result()


def _unpacked(function: _Packed) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(args, kwargs)

    return call


def _guarded(task: _Packed, session: GuestSession) -> Callable[..., Any]:
    """Let a task's own failure, and no other error, reach the code that called it."""

    async def guarded(coroutine: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await coroutine
        except Exception as error:  # noqa: BLE001 - sorted out below, never swallowed
            failure = error
        _pass_on(failure, session)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            answer = task(args, kwargs)
        except Exception as error:  # noqa: BLE001 - sorted out below, never swallowed
            failure = error
        else:
            return guarded(answer) if inspect.iscoroutine(answer) else answer
        _pass_on(failure, session)

    return call


def _pass_on(error: Exception, session: GuestSession) -> NoReturn:
    """Raise what the calling code may see. Not in the handler: it would be the error's ``__context__``."""
    if isinstance(error, TaskError):
        raise without_run(error)
    if isinstance(error, InputError):
        raise error
    if isinstance(error, RecursionError):  # of the host stack: guest code has a limit of its own
        error = too_deep("too many")
    session.stop(HostFault(error))
    raise HostFault(error)


def without_run(error: TaskError) -> TaskError:
    """Return the same error without the run: its state may hold what the caller was never granted.

    Nor does it know the errors before it: that of a provider has the request, with the key.
    """
    copy = type(error).__new__(type(error), *error.args)
    vars(copy).update({name: value for name, value in vars(error).items() if name != "_run"})
    return copy
