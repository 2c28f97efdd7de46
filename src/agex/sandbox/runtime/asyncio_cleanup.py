"""Callbacks that a guest hangs on the futures of an event loop: called while its run is on, and not after.

A future of asyncio's own is what any coroutine gives when it is stepped by hand. What is hung on one, the
loop of the host calls when it likes, without a limit, and it may hang itself on the next. A guest takes off
what it hung there itself: what it names would be asked whether it equals what others did.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxError, SandboxTypeError

if TYPE_CHECKING:
    from contextvars import Context

    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["Callback", "adding", "end_callbacks", "no_exit", "removing"]


@contextmanager
def no_exit() -> Iterator[None]:
    """Have ``SystemExit`` be an error like others: an event loop in which it is raised ends at once."""
    try:
        yield
    except SystemExit as error:
        raise SandboxError(
            "SystemExit is not available to end a program; return or raise an Exception"
        ) from error


class Callback:
    """What stands for a callback of the guest's."""

    __slots__ = ("__weakref__", "_function")

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function: Callable[[Any], object] | None = function

    def __call__(self, future: Any) -> None:
        if self._function is not None:
            with no_exit():
                self._function(future)

    def stands_for(self, function: object) -> bool:
        """Tell whether it is *function* that was hung."""
        return bool(self._function == function)

    def __repr__(self) -> str:
        return repr(self._function)

    def end(self) -> None:
        """Call it no more."""
        self._function = None


_HUNG = "callbacks"
"""What those of a run that is on are noted under, with its guest's guards."""


def adding(guards: Membrane, add: Callable[..., object]) -> Callable[..., None]:
    """Give ``add_done_callback`` of a future for a guest."""

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
    """Equals those of some callbacks that stand for a function."""

    __slots__ = ("_callbacks", "_function")

    def __init__(self, function: object, callbacks: list[Callback | None]) -> None:
        self._function = function
        self._callbacks = callbacks

    def __eq__(self, other: object) -> bool:
        return any(each is other and each.stands_for(self._function) for each in self._callbacks if each)

    __hash__ = None  # type: ignore[assignment]


def removing(guards: Membrane, remove: Callable[..., int]) -> Callable[..., int]:
    """Give ``remove_done_callback`` of a future for a guest."""

    def remove_done_callback(fn: Any, /) -> int:
        return remove(_Named(fn, [each() for each in guards.notes.get(_HUNG, ())]))

    return remove_done_callback


def end_callbacks(guards: Membrane) -> None:
    """Have no callback of the guest called any more: its run is over."""
    for each in guards.notes.get(_HUNG, ()):
        callback = each()
        if callback is not None:
            callback.end()
    guards.notes.pop(_HUNG, None)  # at last: cut short before, the others are ended when it is asked again
