"""The switch that ends the code of a session: a flag for stop checks, and new code for other functions.

A stop check at entry takes a tenth of the time of a small function. A function that a program defines
outside of other functions has none: it is listed when it is made. When the run is to end, the code of all
listed functions is exchanged for code that ends it. Any call of them then ends the run, also from a finalizer
or from C code that drops errors. A function that another function makes is made too often to be listed.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
import sys
import threading
import types
import weakref
from collections.abc import AsyncGenerator, Generator
from typing import Any, NoReturn

from agex._interpreter import syntax_trees
from agex.sandbox.rules.code_flags import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.runtime.deadline import RUNNING
from agex.sandbox.runtime.limits import Stop

__all__ = ["Switch", "bound", "builtins_inside", "check_stop", "frames_of", "is_inside"]

_ROOM = 64
"""Functions listed before it is worth looking for those that are gone."""


class Switch:
    """Ends the code of one session, and lets it run again.

    Args:
        builtins: of the session.
    """

    def __init__(self, builtins: dict[str, Any]) -> None:
        self._builtins = builtins
        self._listed: list[_Listed] = []
        self._exchanged = 0
        self._room = _ROOM

    @property
    def is_on(self) -> bool:
        """Whether the code is to end."""
        return self._builtins["stop!"] is not RUNNING

    def turn_on(self) -> None:
        """End the code at its next stop check or call of a listed function; any thread may.

        A second signal that interrupts this and turns it on as well goes on where this stands.
        """
        self._builtins["stop!"] = True  # at once: the rest fails where guest code has used up the stack
        with _lock:
            self._end()

    def turn_off(self) -> None:
        """Let the code run."""
        if not self.is_on:
            return
        with _lock:
            self._restore()

    # In methods of their own: where a loop that ends a `with` block jumps back, CPython 3.13 is out of that
    # block. A strike may fall there, and the lock would stay locked.

    def _end(self) -> None:
        self._builtins["stop!"] = True  # once more: it may have been turned off meanwhile
        while self._exchanged < len(self._listed):
            self._listed[self._exchanged].end()
            self._exchanged += 1

    def _restore(self) -> None:
        self._exchanged = 0  # so that an interrupt that turns it on again ends all of them
        for each in self._listed:
            each.restore()
        self._exchanged = 0
        self._builtins["stop!"] = RUNNING  # at last: interrupted before, it is on still

    def enlist(self, function: types.FunctionType) -> types.FunctionType:
        """Note a function that has no stop check; the first decorator of all."""
        if len(self._listed) >= self._room:
            with _lock:
                self._drop()
        listed = _Listed(function)
        self._listed.append(listed)
        if self.is_on:  # asked behind the line above: another thread may be turning it on
            listed.end()
        return function

    def _drop(self) -> None:
        if not self.is_on:
            self._listed = [each for each in self._listed if each.is_there()]
            self._room = _ROOM + 2 * len(self._listed)


class _Listed:
    """A function that has no stop check, and may be gone."""

    __slots__ = ("_code", "_ending", "_function")

    def __init__(self, function: types.FunctionType) -> None:
        self._function = weakref.ref(function)
        self._code = code = function.__code__
        self._ending = _ENDINGS.get((code.co_flags & _KINDS, len(code.co_freevars))) or _ending(code)

    def is_there(self) -> bool:
        return self._function() is not None

    def end(self) -> None:
        if (function := self._function()) is not None and function.__code__ is not self._ending:
            self._code = function.__code__  # types.coroutine() gives another to what it takes
            function.__code__ = self._ending

    def restore(self) -> None:
        if (function := self._function()) is not None:
            function.__code__ = self._code


_KINDS = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


def _function(*args: Any, **kwargs: Any) -> NoReturn:
    raise Stop


def _generator(*args: Any, **kwargs: Any) -> Generator[None]:
    raise Stop
    yield  # type: ignore[unreachable] # makes it one


async def _coroutine(*args: Any, **kwargs: Any) -> NoReturn:
    raise Stop


async def _async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[None]:
    raise Stop
    yield  # type: ignore[unreachable] # makes it one


_ENDINGS: dict[tuple[int, int], types.CodeType] = {
    (kind.__code__.co_flags & _KINDS, 0): kind.__code__.replace(co_names=("Stop!",))
    for kind in (_function, _generator, _coroutine, _async_generator)
}
"""Code that ends a run, by kind and number of free variables, which an exchange must not change."""


def _ending(code: types.CodeType) -> types.CodeType:
    """Make the code exchanged for code with free variables: `super` in a method has one."""
    kind, count = code.co_flags & _KINDS, len(code.co_freevars)
    free = tuple([f"free!{i}" for i in range(count)])
    made = _ENDINGS[kind, count] = _ENDINGS[kind, 0].replace(co_freevars=free)
    return made


class _Bound:
    """Marks code without a stop check: pickled by value, it would run elsewhere, over the real `open`."""

    def __reduce__(self) -> NoReturn:
        import pickle  # the caller has it loaded

        raise pickle.PicklingError(
            "code of the sandbox runs in its session only; pass a function of a module of yours"
        )


_BOUND = (_Bound(),)


def bound(code: types.CodeType, parts: tuple[Any, ...]) -> types.CodeType:
    """Return code with other constants, which cannot be pickled."""
    return code.replace(co_consts=parts + _BOUND)


_lock = threading.RLock()


def _renew() -> None:
    global _lock  # noqa: PLW0603 - another thread may have held it when the process was forked
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def check_stop() -> None:
    """Raise `Stop` if the run that is on here is to end."""
    guards = CURRENT.get()
    if guards is not None and guards.builtins["stop!"]:
        raise Stop


# -- the calls that a thread is in ---------------------------------------------------------------


def builtins_inside(thread: int, base: types.FrameType) -> list[dict[str, Any]]:
    """Return the builtins of each call that a thread is in, the innermost first, up to the frame *base*.

    The list is empty where the thread is not in that frame: the event loop runs another task.
    """
    found = frames_of(thread)
    try:
        return [frame.f_builtins for frame in found[: found.index(base)]] if base in found else []
    finally:
        found.clear()  # frames of this very thread hold this list


def is_inside(thread: int, builtins: dict[str, Any]) -> bool:
    """Return whether a thread is in a call of a function that has these builtins."""
    found = frames_of(thread)
    try:
        return any(frame.f_builtins is builtins for frame in found if frame is not None)
    finally:
        found.clear()


def frames_of(thread: int) -> list[Any]:
    """Return the frames that a thread is in, the innermost first. The caller clears the list.

    Following ``f_back`` while the thread runs on crashes the process now and then (seen on Python 3.11). So
    the whole walk is one call into C, with no collection in it that could let another thread run.
    """
    found: list[Any] = []

    def walk() -> None:
        frames: Any = sys._current_frames  # pyright: ignore[reportPrivateUsage] - not called yet
        first = map(operator.itemgetter(thread), itertools.starmap(frames, [()]))
        found.extend(itertools.accumulate(itertools.chain(first, itertools.repeat("f_back")), getattr))

    try:
        # The outermost frame has None behind it, which has no f_back; and the thread may be over.
        with contextlib.suppress(AttributeError, KeyError):
            syntax_trees.undisturbed(walk)
    except BaseException:
        found.clear()
        raise
    return found
