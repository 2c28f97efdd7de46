"""Stop checks in the context managers that the standard library itself enters.

Each ``with`` of guest code is followed by a stop check, so that a manager cannot swallow the stop. But
``ContextDecorator`` has a ``with`` of its own, and ``ExitStack`` a loop over managers. C code that calls
these (``map``, say) would never reach a check. Subclasses inherit the methods of the standard library, so
these are replaced, once a process. The replacements test the stop flag while guest code runs, and change
nothing for the host.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from typing import Any

from agex.sandbox.runtime.context import CURRENT
from agex.sandbox.runtime.kill_switch import check_stop

__all__ = ["install"]

_call: Any = contextlib.ContextDecorator.__call__
_async_call: Any = contextlib.AsyncContextDecorator.__call__
_exit: Any = contextlib.ExitStack.__exit__
_aexit: Any = contextlib.AsyncExitStack.__aexit__


def install() -> None:
    """Put the checks in place, once a process."""
    if contextlib.ContextDecorator.__call__ is _call:
        for class_, method in _CHECKED:
            setattr(class_, method.__name__, method)


def __call__(self: Any, func: Callable[..., Any]) -> Any:  # noqa: N807 - the name it has in its class
    if CURRENT.get() is None:
        return _call(self, func)

    @functools.wraps(func, assigned=_assigned(func), updated=_updated(func))
    def inner(*args: Any, **kwds: Any) -> Any:
        value = None
        with self._recreate_cm():
            value = func(*args, **kwds)
        check_stop()
        return value

    return inner


def _decorated(self: Any, func: Callable[..., Any]) -> Any:
    if CURRENT.get() is None:
        return _async_call(self, func)

    @functools.wraps(func, assigned=_assigned(func), updated=_updated(func))
    async def inner(*args: Any, **kwds: Any) -> Any:
        value = None
        async with self._recreate_cm():
            value = await func(*args, **kwds)
        check_stop()
        return value

    return inner


def _assigned(func: object) -> tuple[str, ...]:
    """Return the attributes to copy to a wrapper: a class that is read for its annotations stores them."""
    return functools.WRAPPER_ASSIGNMENTS if type(func) is types.FunctionType else _SAID


_SAID = ("__module__", "__name__", "__qualname__", "__doc__")


def _updated(func: object) -> tuple[str, ...]:
    """Return the mappings to copy to a wrapper; only functions have one whose names all may read."""
    return functools.WRAPPER_UPDATES if type(func) is types.FunctionType else ()


class _Unwound:
    """Passed to the real ``__exit__`` in place of the stack; raises once the run is to end."""

    def __init__(self, stack: Any) -> None:
        self._exit_callbacks = _Callbacks(stack)


class _Callbacks:
    def __init__(self, stack: Any) -> None:
        self._stack = stack

    def __bool__(self) -> bool:
        check_stop()
        return bool(self._stack._exit_callbacks)

    def pop(self) -> Any:
        return self._stack._exit_callbacks.pop()


def __exit__(self: Any, *exc_details: Any) -> Any:  # noqa: N807 - the name it has in its class
    return _exit(self if CURRENT.get() is None else _Unwound(self), *exc_details)


async def __aexit__(self: Any, *exc_details: Any) -> Any:  # noqa: N807 - the name it has in its class
    return await _aexit(self if CURRENT.get() is None else _Unwound(self), *exc_details)


_decorated.__name__ = "__call__"
_CHECKED: tuple[tuple[type, Any], ...] = (
    (contextlib.ContextDecorator, __call__),
    (contextlib.AsyncContextDecorator, _decorated),
    (contextlib.ExitStack, __exit__),
    (contextlib.AsyncExitStack, __aexit__),
)
for _class, _method in _CHECKED:
    _method.__module__ = "contextlib"
    _method.__qualname__ = f"{_class.__name__}.{_method.__name__}"
