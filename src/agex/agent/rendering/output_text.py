"""The text that shows the model what its code did. Always bounded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agex import escaping as printable
from agex.models.surrogates import encodable

if TYPE_CHECKING:
    from agex.sandbox import Result

__all__ = ["cut_middle", "encodable", "error_text", "exact", "last_lines", "quoted", "result_text"]

_HEADS = frozenset({
    "Traceback (most recent call last):",
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
})  # fmt: skip
_ERROR = re.compile(r"[\w.<>]+(:|$)")
"""How the line begins that names an error. The name of a class may be any text."""

SILENT = "(The code ran without an error and printed nothing.)"


def cut_middle(text: str, limit: int) -> str:
    """Return *text* in at most *limit* characters and a note; the middle goes, with a note of how much."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    note = f"\n... ({len(text) - limit} characters cut here; print less) ...\n"
    return text[:head] + note + text[len(text) - tail :]


def result_text(result: Result, limit: int, notes: tuple[str, ...] = ()) -> str:
    """Return what a run printed, the value of its last expression and its error, then *notes*."""
    echo = result.echo or ""
    error = error_text(result.traceback)
    parts = [part for part in (result.stdout.rstrip("\n"), echo, *notes) if part]
    space = limit - min(len(error), limit // 2)
    shown = [cut_middle("\n".join(parts), space)] if parts else []
    shown += [cut_middle(error, limit // 2)] if error else []
    return encodable("\n".join(shown)) or SILENT


def last_lines(traceback: str, count: int = 3) -> list[str]:
    """Return where an error came from and what it says: the last lines of its traceback."""
    lines = [line for line in error_text(traceback).split("\n") if line.strip(" ^~")]
    return lines[-count:]


def error_text(traceback: str) -> str:
    """Return a traceback in which only its own lines begin at the margin.

    The message of an error is anybody's text. Its further lines stand indented, so none of them begins a
    section of the prompt; all that ends a line, other than a line feed, is spelled out.
    """
    shown: list[str] = []
    may_name = True  # the error, which is named once after each head
    for each in traceback.strip("\n").split("\n"):
        line = printable.line(each.rstrip())
        is_head = line in _HEADS
        at_margin = not line or line[0] == " " or is_head or (may_name and _ERROR.match(line) is not None)
        may_name = is_head or (may_name and (not line or line[0] == " "))
        shown.append(line if at_margin else f"    {line}")
    return "\n".join(shown)


def exact(text: str) -> str:
    """Return a plain ``str``: a guest subclass may have methods of any kind."""
    return str.__str__(text)


_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_HEADING = re.compile(
    rf"(^|[{_ENDS}])([^\S{_ENDS}]*)(?=What is in the workspace|The caller answers your question:|"
    r"This is your last turn|The task:|Its inputs, already bound|Examples that must hold:|"
    r"Its types, bound under|The value must pass:|Keys of cache:|\[turn \d|"
    r"Variables kept from earlier tasks|This code has been run already:|It showed:|Shown here:|"
    r"Complete this Python function|It will be called with:|You may use:|An earlier answer was wrong:|"
    r"Write the corrected function|## Working Memory|### (?:Stored Values|Observations|Failed Approaches))"
)
"""Where a line begins as a section of a prompt does."""


def quoted(text: str) -> str:
    """Return what code printed, with a mark before each line that reads as the heading of a section."""
    return _HEADING.sub(r"\1\2> ", text)
