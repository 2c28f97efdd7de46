"""Errors of host functions that guest code called: reported to the host as they happen.

The agent's code gets the error, as from any call. But it may be a mistake that only the host can put
right, so the host is told too: by the log, with the traceback, by an event, and as the cause of the
failure that ends the run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, FunctionType, TracebackType
from typing import Any

from agex.agent.call.call import Call, current_call, host_time
from agex.agent.call.log_lines import LOGGER
from agex.contract import holds_guests
from agex.contract.real_types import class_attribute, class_name, own_attributes
from agex.errors import CallRejected, CheckError, InputError, TaskError
from agex.host_texts import HostTexts

__all__ = ["HostFault", "faults", "is_of_guest", "message_of", "note_fault", "noting", "tell_host"]

_WORKERS = "agex.isolation.rpc.guest_functions"
"""The module by which the host calls a guest function in a worker."""


class HostFault(BaseException):
    """Carries an error meant for the host through code that must not catch it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def noting(name: str) -> Callable[[Exception], None]:
    """Return the callback that takes the errors of the registered function *name*."""
    return partial(note_fault, name)


def note_fault(name: str, error: Exception, call: Call | None = None) -> None:
    """Report to the host that its function *name* raised an error while guest code called it.

    Not reported: a failure of another task, arguments that the function does not take, and errors of
    guest code that the function called.
    """
    call = call or current_call()
    if call is None or isinstance(error, TaskError | InputError | CheckError | CallRejected):
        return
    if is_of_guest(error) or (isinstance(error, TypeError) and not _is_begun(error)):
        return
    if call.note_fault(name, error):
        tell_host(f"{name}, which the agent's code called,", error)


def tell_host(who: str, error: BaseException) -> None:
    """Write an error to the log, with its traceback."""
    with host_time(current_call()):
        message, shown = message_of(error), _traceback_of(error)
        is_whole = shown is not None and not _has_guest_causes(error)
        if shown is not None and not is_whole:
            message = f"{message}\n{shown}"
        # The log asks for the texts again.
        LOGGER.warning(
            "%s raised %s: %s", who, type(error).__name__, message, exc_info=error if is_whole else None
        )


def faults(call: Call) -> Iterator[dict[str, Any]]:
    """Yield the fields of an `ErrorEvent` for each error of the host during an action."""
    for name, error in call.take_faults():
        is_last = isinstance(error, CheckError)
        message = str(error) if is_last else f"{name} raised {type(error).__name__}: {message_of(error)}"
        yield {
            "message": message,
            "error": type(error).__name__,
            "recoverable": not is_last,
            "traceback": _traceback_of(error.__cause__ if is_last else error) or message,
        }


def message_of(error: BaseException) -> str:
    """Return the message of an error; the class of one that takes too long, fails or is of guest code."""
    if _is_plain(error):
        return str(error)
    text = None if holds_guests(error) else HostTexts().of(error, str)
    return f"<{class_name(type(error))}>" if text is None else text


def _traceback_of(error: BaseException | None) -> str | None:
    """Return an error with its frames and its causes; None where one of them has no readable text.

    The causes are left out where one is an error of guest code.
    """
    if error is None or (holds_guests(error) and not _is_plain(error)):
        return None
    if _has_guest_causes(error):
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"Traceback (most recent call last):\n{frames}{class_name(type(error))}: {message_of(error)}\n"
    if all(map(_is_plain, _chain(error))):
        return _formatted(error)
    texts = HostTexts()
    text = texts.of(error, _formatted)
    return None if texts.failures else text


def _formatted(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _is_plain(error: BaseException) -> bool:
    """Return whether the text of an error is made by the interpreter, of plain data."""
    kind = type(error)
    written = [class_attribute(kind, name) for name in ("__str__", "__repr__")]
    held = [*error.args, *own_attributes(error).get("__notes__", ())]
    return FunctionType not in map(type, written) and all(type(each) in _PLAIN for each in held)


_PLAIN = (str, int, float, bool, bytes, type(None))


def _has_guest_causes(error: BaseException) -> bool:
    return any(holds_guests(each) and not _is_plain(each) for each in _chain(error))


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and those that it came from."""
    chain: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and not any(each is one for one in chain):
            chain.append(each)
            left += [each.__cause__, each.__context__]
            left += each.exceptions if isinstance(each, BaseExceptionGroup) else ()
    return chain


def is_of_guest(error: BaseException) -> bool:
    """Return whether guest code raised an error, here or in a worker."""
    return any("check!" in f.f_builtins or f.f_globals.get("__name__") == _WORKERS for f in _frames(error))


def _is_begun(error: BaseException) -> bool:
    """Return whether a function was entered: its arguments are those that it takes."""
    return any(not str(f.f_globals.get("__name__")).startswith("agex.") for f in _frames(error))


def _frames(error: BaseException) -> Iterator[FrameType]:
    step: TracebackType | None = error.__traceback__
    while step is not None:
        yield step.tb_frame
        step = step.tb_next
