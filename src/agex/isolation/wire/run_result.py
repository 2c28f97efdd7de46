"""Outcome of a run, read from the untrusted messages of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from agex.errors import EvalError
from agex.isolation.wire.deadline import RunClock
from agex.isolation.wire.error_codec import (
    Finder,
    OutOfMemory,
    ProtocolError,
    WorkerGone,
    WorkerLost,
    unpack_error,
)
from agex.isolation.wire.framing import Frame
from agex.sandbox import Enforcement, Result
from agex.sandbox.runtime.output import Output
from agex.sandbox.runtime.scopes import is_bindable

__all__ = [
    "gathered",
    "listed",
    "lost_because",
    "lost_result",
    "modules_of",
    "read_outcome",
    "refuse",
    "text_of",
    "timed_out",
]

_MOST_NAME = 4096
"""Characters of the import for one variable."""
_MOST_TEXT = 4 << 20
"""Bytes of a text that are looked at: far more than any limit of output."""


def read_outcome(
    done: Frame, output: Output, unpack: Callable[[Frame, Sequence[memoryview]], Any], find: Finder
) -> Result:
    """Read the message that ends a run.

    Args:
        done: the message.
        output: what was printed so far; the rest is in the message.
        unpack: decodes the value.
        find: returns a registered class by its full name.

    Raises:
        ProtocolError: it is none.
    """
    header, parts = done.header, done.parts
    if len(parts) < 3:
        raise ProtocolError("the end of a run lacks its texts")
    rest, echo, traceback = map(text_of, parts[:3])
    output.write(rest)
    error = header.get("error")
    result = Result(
        echo=echo if header.get("echo") is True else None,
        stdout=output.text(),
        error=None if error is None else unpack_error(error, find),
        traceback=traceback,
        enforcement=Enforcement(time="signal" if header.get("time") == "signal" else "flag"),
    )
    if error is None and header.get("v"):
        result.value = unpack(done, parts[3:])
    return result


def text_of(part: memoryview) -> str:
    """Return a part as text; bytes that are none are replaced."""
    return bytes(part[:_MOST_TEXT]).decode("utf-8", "replace")


def listed(found: Any) -> Iterable[str]:
    """Return a list as it came; an empty one for anything else."""
    return found if type(found) is list else ()


def gathered(chars: int) -> Output:
    """Return the buffer for the output of a worker, which cuts it to *chars* with a note."""
    return Output(2 * chars + 1_000)


def timed_out(cause: TimeoutError) -> EvalError:
    """Return the error for a run that was late."""
    error = EvalError(f"TimeoutError: {cause}")
    error.__cause__ = cause
    return error


def lost_because(error: Exception, ended: str, clock: RunClock | None) -> str:
    """Return the text that says why a worker is not usable any more, and what is left.

    Args:
        error: of the connection.
        ended: how its process ended.
        clock: the running one; None outside a run and a chore.
    """
    if isinstance(error, TimeoutError) and clock is not None and not clock.of_guest:
        what = (
            f"TimeoutError: the process that runs the code did not answer for {clock.seconds:g} s, "
            "so it was killed"
        )
    elif isinstance(error, TimeoutError):
        seconds = 0 if clock is None else clock.seconds
        what = f"TimeoutError: the code ran longer than {seconds:g} s and did not stop, so it was killed"
    elif isinstance(error, ProtocolError):
        what = f"the process that ran the code was killed: it sent what no worker sends ({error})"
    elif isinstance(ended, OutOfMemory):
        what = f"MemoryError: the process that ran the code was killed: {ended}"
    else:
        what = f"the process that ran the code ended: {ended} ({error})"
    return f"{what}; variables are as they were when they were last kept, so do less in one step"


def lost_result(lost: EvalError, ending: BaseException | None, stdout: str) -> Result:
    """Return the result of a run whose worker was lost.

    Args:
        lost: says why.
        ending: with which the host wanted to end the run.
        stdout: printed before.
    """
    error = EvalError(str(lost))
    if isinstance(ending, TimeoutError):
        error = EvalError(f"{timed_out(ending)} ({lost})")
        error.__cause__ = ending
    elif isinstance(lost.__cause__, TimeoutError):  # it was late and did not stop by itself
        error.__cause__ = lost.__cause__
    elif isinstance(lost, WorkerLost) and lost.memory is not None:
        error.__cause__ = MemoryError(lost.memory)
    elif ending is None and isinstance(lost, WorkerLost) and lost.was_killed:
        error.__cause__ = lost
    return Result(
        error=error, traceback=f"EvalError: {error}", stdout=stdout, enforcement=Enforcement(time="kill")
    )


def refuse(frame: Frame) -> NoReturn:
    """Raise the error for a message that the protocol does not allow here."""
    if frame.kind == "fault":
        raise WorkerGone(str(frame.header.get("why"))[:2000])
    raise ProtocolError(f"a message of kind {frame.kind[:40]!r} came out of turn")


def modules_of(header: object) -> Iterator[tuple[str, str]]:
    """Return the variables that are modules, from untrusted data: they are imported under grants."""
    for name, text in header.items() if isinstance(header, dict) else ():
        if type(name) is type(text) is str and is_bindable(name) and len(text) <= _MOST_NAME:
            yield name, text
