"""The traceback that the author of guest code needs: its own frames, with their lines."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any

from agex.errors import EvalError

__all__ = ["format_error"]

_FRAMES = 20  # of each end: what a recursion error repeats a thousand times says nothing new
_CAUSES = 3


def format_error(error: BaseException, builtins: Mapping[str, Any], sources: Mapping[str, list[str]]) -> str:
    """Format *error* with the frames that run with *builtins*, and the errors it came from."""
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(parts) < 2 * _CAUSES:
        seen.add(id(current))
        cause = None if isinstance(current, EvalError) else current.__cause__  # its text says it all
        context = None if current.__suppress_context__ else current.__context__
        parts.append(_format_one(current, builtins, sources))
        if cause is not None:
            parts.append("\nThe above exception was the direct cause of the following exception:\n")
        elif context is not None:
            parts.append("\nDuring handling of the above exception, another exception occurred:\n")
        current = cause or context
    return "\n".join(reversed(parts if len(parts) % 2 else parts[:-1]))


def _format_one(error: BaseException, builtins: Mapping[str, Any], sources: Mapping[str, list[str]]) -> str:
    lines = [_frame(frame, line, sources) for frame, line in _guest_frames(error.__traceback__, builtins)]
    if len(lines) > 2 * _FRAMES:
        lines[_FRAMES:-_FRAMES] = [f"  ... [{len(lines) - 2 * _FRAMES} frames cut] ..."]
    head = ["Traceback (most recent call last):", *lines] if lines else []
    return "\n".join([*head, *_last_lines(error)])


def _last_lines(error: BaseException) -> Iterator[str]:
    """Give what the error says; one of ours by its short name, which is how guest code would catch it."""
    import traceback

    module = type(error).__module__
    prefix = f"{module}." if module.partition(".")[0] == "agex" else ""
    # Its causes are looked at too, but no source of the host is read for them.
    text = traceback.TracebackException(type(error), error, None, lookup_lines=False, compact=True)
    for part in text.format_exception_only():
        yield part.rstrip("\n").removeprefix(prefix)


def _guest_frames(
    tb: types.TracebackType | None, builtins: Mapping[str, Any]
) -> Iterator[tuple[types.FrameType, int]]:
    while tb is not None:
        if tb.tb_frame.f_builtins is builtins:
            yield tb.tb_frame, tb.tb_lineno
        tb = tb.tb_next


def _frame(frame: types.FrameType, line: int, sources: Mapping[str, list[str]]) -> str:
    code = frame.f_code
    text = f'  File "{code.co_filename}", line {line}, in {code.co_name}'
    source = sources.get(code.co_filename, [])
    if 0 < line <= len(source) and source[line - 1].strip():
        text += f"\n    {source[line - 1].strip()}"
    return text
