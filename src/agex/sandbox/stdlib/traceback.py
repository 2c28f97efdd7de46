"""Tracebacks for the author of guest code: its own frames, with their lines.

Guest code gets them as text from its ``traceback``, which leads to no frame.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from agex.errors import EvalError, SandboxError
from agex.sandbox.runtime.context import asking
from agex.sandbox.stdlib.sys_streams import write_error

__all__ = ["TRACEBACK", "Blank", "format_error", "format_own", "handled"]


class Blank(Exception):
    """Stands before guest code for an error that the host handles: of that one guest code learns nothing."""

    @classmethod
    def happen(cls) -> NoReturn:
        """Raise it."""
        raise cls


_FRAMES = 20  # at each end: the thousand equal frames of a RecursionError tell nothing new
_CAUSES = 3
_MEMBERS = 15  # of a group of exceptions: `max_group_width` of CPython's traceback
_DEPTH = 4  # of groups in groups

_EXCEPTIONS: Callable[[BaseException], tuple[BaseException, ...]] = vars(BaseExceptionGroup)[
    "exceptions"
].__get__


def format_error(error: BaseException, builtins: Mapping[str, Any], sources: Mapping[str, list[str]]) -> str:
    """Format *error* and its causes, with the frames that run with *builtins*."""
    return format_own(error, lambda frame: frame.f_builtins is builtins, sources)


def format_own(
    error: BaseException,
    is_own: Callable[[types.FrameType], bool],
    sources: Mapping[str, list[str]],
    depth: int = 0,
) -> str:
    """Format *error* and its causes, with the frames of guest code.

    The members of a group stand below it; *depth* is the number of groups around it.
    """
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(parts) < 2 * _CAUSES:
        seen.add(id(current))
        cause = None if isinstance(current, EvalError) else current.__cause__  # its text contains the cause
        context = None if current.__suppress_context__ else current.__context__
        context = None if type(context) is Blank else context
        members = _members(current, is_own, sources, depth)
        parts.append("\n".join([_format_one(current, is_own, sources), *members]))
        if cause is not None:
            parts.append("\nThe above exception was the direct cause of the following exception:\n")
        elif context is not None:
            parts.append("\nDuring handling of the above exception, another exception occurred:\n")
        current = cause or context
    return "\n".join(reversed(parts if len(parts) % 2 else parts[:-1]))


def _format_one(
    error: BaseException, is_own: Callable[[types.FrameType], bool], sources: Mapping[str, list[str]]
) -> str:
    lines = [_frame(frame, line, sources) for frame, line in _guest_frames(error.__traceback__, is_own)]
    if len(lines) > 2 * _FRAMES:
        lines[_FRAMES:-_FRAMES] = [f"  ... [{len(lines) - 2 * _FRAMES} frames cut] ..."]
    head = ["Traceback (most recent call last):", *lines] if lines else []
    return "\n".join([*head, *_last_lines(error)])


def _members(
    error: BaseException,
    is_own: Callable[[types.FrameType], bool],
    sources: Mapping[str, list[str]],
    depth: int,
) -> Iterator[str]:
    """Yield the lines of the members of an exception group."""
    if not issubclass(type(error), BaseExceptionGroup):
        return
    found = _EXCEPTIONS(error) if depth < _DEPTH else ()
    for number, each in enumerate(found[:_MEMBERS], 1):
        yield f"  +---------------- {number} ----------------"
        for line in format_own(each, is_own, sources, depth + 1).splitlines():
            yield f"  | {line}"
    if len(found) > _MEMBERS:
        yield f"  +---------------- ... [{len(found) - _MEMBERS} exceptions cut] ..."
    else:
        yield "  +------------------------------------" if found else "  ... [exceptions cut] ..."


def _last_lines(error: BaseException) -> Iterator[str]:
    """Yield the message of an error; agex's own errors by their short names, as guest code catches them."""
    import traceback

    module = type(error).__module__
    prefix = f"{module}." if module.partition(".")[0] == "agex" else ""
    # It follows the causes too, but reads no host source for them.
    text = traceback.TracebackException(type(error), error, None, lookup_lines=False, compact=True)
    for part in text.format_exception_only():
        yield part.rstrip("\n").removeprefix(prefix)


def _guest_frames(
    tb: types.TracebackType | None, is_own: Callable[[types.FrameType], bool]
) -> Iterator[tuple[types.FrameType, int]]:
    while tb is not None:
        if is_own(tb.tb_frame):
            yield tb.tb_frame, tb.tb_lineno
        tb = tb.tb_next


def _frame(frame: types.FrameType, line: int, sources: Mapping[str, list[str]]) -> str:
    code = frame.f_code
    text = f'  File "{code.co_filename}", line {line}, in {code.co_name}'
    source = sources.get(code.co_filename, [])
    if 0 < line <= len(source) and source[line - 1].strip():
        text += f"\n    {source[line - 1].strip()}"
    return text


def format_exc(limit: None = None, chain: bool = True) -> str:
    """Return the text of the handled error, as ``traceback.format_exc`` does."""
    return "".join(_lines(handled(), limit, chain))


def print_exc(limit: None = None, file: Any = None, chain: bool = True) -> None:
    """Print the handled error to the output, or to *file*."""
    _print(_lines(handled(), limit, chain), file)


def format_exception(
    exc: BaseException, /, value: Any = None, tb: Any = None, limit: None = None, chain: bool = True
) -> list[str]:
    """Return the lines of an error, as ``traceback.format_exception`` does."""
    return _lines(value if isinstance(value, BaseException) else exc, limit, chain)


def print_exception(  # noqa: PLR0917 - as in the standard library
    exc: BaseException,
    /,
    value: Any = None,
    tb: Any = None,
    limit: None = None,
    file: Any = None,
    chain: bool = True,
) -> None:
    """Print an error to the output, or to *file*."""
    _print(format_exception(exc, value, tb, limit, chain), file)


def format_exception_only(exc: BaseException, /, value: Any = None) -> list[str]:
    """Return the message of an error, without where it was raised."""
    return [f"{line}\n" for line in _last_lines(value if isinstance(value, BaseException) else exc)]


def handled() -> BaseException | None:
    """Return the error that guest code handles, but none that host code handles meanwhile."""
    error, guards = sys.exc_info()[1], asking()
    tb = None if error is None else error.__traceback__
    return error if guards and tb and tb.tb_frame.f_builtins is guards.builtins else None


def _lines(error: BaseException | None, limit: Any, chain: Any) -> list[str]:
    if limit is not None or not chain:
        raise SandboxError("limit and chain are not available here; format_exception_only() gives the end")
    if error is None:
        return ["NoneType: None\n"]
    if not isinstance(error, BaseException):
        raise TypeError("Exception expected for value, " + type(error).__name__ + " found")
    guards = asking()
    if guards is None:
        return format_exception_only(error)
    return f"{format_error(error, guards.builtins, guards.sources)}\n".splitlines(keepends=True)


def _print(lines: list[str], file: Any) -> None:
    for line in lines:
        if file is None:
            write_error(line)
        else:
            print(line, end="", file=file)


TRACEBACK = {
    each.__name__: each
    for each in (format_exc, print_exc, format_exception, print_exception, format_exception_only)
}
