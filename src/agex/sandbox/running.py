"""``asyncio.run`` of a program that no event loop runs: it has one of its own, for the length of the call.

No work of the host is in that loop. So the limits strike in it as they do anywhere, and where one does, the
loop runs once more for what is left there, which ends at its next stop check. None strikes while the loop
is made or closed.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxError
from agex.sandbox.awaiting import end_tasks, is_coroutine, run_apart
from agex.sandbox.context import CURRENT
from agex.sandbox.origins import session_in

if TYPE_CHECKING:
    import asyncio

    from agex.sandbox.guards import Guards
    from agex.sandbox.session import Session

__all__ = ["end_loops", "run"]

_loops: weakref.WeakKeyDictionary[Guards, list[tuple[Any, Any]]] = weakref.WeakKeyDictionary()
"""The loops of the runs that are on, by whose guest; each with the hooks of the thread before it."""


def run(main: Any, **options: Any) -> Any:
    """Do what ``asyncio.run`` does."""
    guards = CURRENT.get()
    session = None if guards is None else session_in(guards.builtins)
    if guards is None or session is None:
        raise SandboxError("asyncio.run() can be called while the sandbox runs, not after")
    if options:
        raise SandboxError(f"asyncio.run() takes no {' or '.join(options)} here; leave it out")
    if sys.platform == "emscripten":
        raise SandboxError("asyncio.run() cannot wait in a browser; call await main() itself, where it may")
    if _running() is not None:
        raise RuntimeError("asyncio.run() cannot be called from a running event loop")
    if not is_coroutine(main):
        raise ValueError(f"a coroutine was expected, got {main!r}")
    try:
        _undisturbed(session, lambda: _open(guards))
        with guards.hooks.waiting(guards.classes.made):
            return _run_in(_loops[guards][-1][0], guards, session, main)
    finally:
        _undisturbed(session, lambda: end_loops(guards))


def _undisturbed(session: Session, work: Callable[[], None]) -> None:
    """Do the host's own work, with the clock of the run on but no limit to strike in its midst."""
    start = time.monotonic()
    with session.paused():
        work()
        session.charge(time.monotonic() - start)


_TURN = 0.05
"""Seconds that the loop waits for at most, to wait on: what strikes in a thread waits for Python code."""
_TIDYING = 1.0
"""Seconds for what is left to end in: a limit that struck in the loop may have lost what would wake it."""


def _open(guards: Guards) -> None:
    import asyncio
    import selectors

    class Selector(selectors.DefaultSelector):  # the best of this system
        def select(self, timeout: float | None = None) -> Any:
            return super().select(_TURN if timeout is None else min(timeout, _TURN))

    # Not the kind of loop that the host prefers: in this one a signal is met as in other Python code.
    loop = asyncio.SelectorEventLoop(Selector())
    _loops.setdefault(guards, []).append((loop, sys.get_asyncgen_hooks()))
    loop.set_debug(False)  # it would read the source of what it calls
    loop.set_exception_handler(_drop)


def _drop(loop: object, context: object) -> None:
    """Report nothing to the log of the host, which could not open its files here."""


def end_loops(guards: Guards) -> None:
    """Close the loops of a guest. One that a limit has left on its way out may look as if it were running."""
    for loop, hooks in _loops.pop(guards, ()):
        if _running() is loop:
            sys.modules["asyncio"]._set_running_loop(None)
        sys.set_asyncgen_hooks(*hooks)
        vars(loop)["_thread_id"] = None
        loop.close()


def _running() -> Any:
    return sys.modules["asyncio"]._get_running_loop()


def _run_in(loop: asyncio.AbstractEventLoop, guards: Guards, session: Session, main: Any) -> Any:
    whole = loop.create_task(_whole(guards, session, main))
    try:
        return loop.run_until_complete(whole)
    finally:
        loop.run_until_complete(_end(guards, whole))


async def _whole(guards: Guards, session: Session, main: Any) -> Any:
    """Run the program, and what ends with it, within what is left of the time."""
    import asyncio

    present, returned = asyncio.current_task(), list[Any]()

    async def program() -> None:
        try:
            returned.append(await main)
        except GeneratorExit:  # it is dropped, maybe while another loop runs
            raise
        except BaseException:
            await _cancel_all(present)
            raise
        await _cancel_all(present)

    await run_apart(guards, program, session.time_left(), session.expire)
    return returned.pop()


async def _cancel_all(but: Any) -> None:
    """Cancel the tasks that are left, and close the asynchronous generators, as ``asyncio.run`` does."""
    import asyncio

    left = asyncio.all_tasks() - {but, asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


async def _end(guards: Guards, whole: asyncio.Task[Any]) -> None:
    """End what is left: a limit may have struck in the loop itself."""
    import asyncio

    if not whole.done():
        whole.cancel()
        await asyncio.wait((whole,), timeout=_TIDYING)
    await end_tasks(guards)
