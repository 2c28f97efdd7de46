"""Fenced blocks of a text: where they begin, and where they really end.

Models put fences inside docstrings, indent them, and forget to close them. Python cannot
parse with a backtick outside a string, so of all lines that might close a block of Python
at most one leaves code that parses: that one is taken. Where none does, and for any other
language, the first line that closes what is open is taken, as in CommonMark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agex.models.source import parse, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Fence", "fenced", "find_fences"]

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")

# A degenerate reply repeats fences without end; each possible end costs a parse.
_MAX_ENDS = 32


@dataclass(frozen=True, kw_only=True)
class Fence:
    """One fenced block."""

    info: str
    """What stands behind the opening marks, e.g. ``python`` or ``write_file path=a.py``."""
    body: str
    """The lines between, without the last line's end."""
    line: int
    """Number of the opening line, from 0."""


@dataclass(frozen=True, kw_only=True)
class _Mark:
    line: int
    indent: str
    marks: str
    info: str

    def counts(self, opening: _Mark) -> bool:
        """Tell whether it is a mark in that block: one of another kind, or a shorter one, is text."""
        return self.marks[0] == opening.marks[0] and len(self.marks) >= len(opening.marks)

    def closes(self, opening: _Mark) -> bool:
        return self.counts(opening) and not self.info


def find_fences(text: str, is_python: Callable[[str], bool]) -> Iterator[Fence]:
    """Yield the fenced blocks of *text* in order.

    Args:
        text: with Unix line ends.
        is_python: told the info string, says whether the block may hold Python.
    """
    lines = text.split("\n")
    marks = [mark for number, line in enumerate(lines) if (mark := _mark(number, line))]
    after = 0
    for position, opening in enumerate(marks):
        if opening.line < after:
            continue
        rest = marks[position + 1 :]
        if is_python(opening.info):
            end, after = _python_end(lines, opening, rest)
        else:
            end, after = _plain_end(lines, opening, rest)
        yield Fence(info=opening.info, body=_body(lines, opening, end), line=opening.line)


def _mark(number: int, line: str) -> _Mark | None:
    match = _FENCE.match(line)
    if match is None:
        return None
    return _Mark(line=number, indent=match["indent"], marks=match["marks"], info=match["info"].strip())


def _python_end(lines: list[str], opening: _Mark, rest: list[_Mark]) -> tuple[int, int]:
    # The line the body ends before, and the line to read on from. A mark with an info string
    # opens the next block, whose forgotten close it stands for; it is not eaten.
    ends = [(mark.line, mark.line + (not mark.info)) for mark in rest[:_MAX_ENDS]]
    ends.append((len(lines), len(lines)))
    for end in ends:
        if parse(tidy(_body(lines, opening, end[0]))) is not None:
            return end
    return _plain_end(lines, opening, rest)


def _plain_end(lines: list[str], opening: _Mark, rest: list[_Mark]) -> tuple[int, int]:
    depth = 0
    for mark in rest:
        if not mark.counts(opening):
            continue
        if mark.info:
            depth += 1
        elif depth:
            depth -= 1
        else:
            return mark.line, mark.line + 1
    first = next((mark for mark in rest if mark.closes(opening)), None)
    return (first.line, first.line + 1) if first else (len(lines), len(lines))


def _body(lines: list[str], opening: _Mark, end: int) -> str:
    return "\n".join(_unindent(line, opening.indent) for line in lines[opening.line + 1 : end])


def _unindent(line: str, indent: str) -> str:
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(blanks, len(indent)) :]


def fenced(info: str, body: str) -> str:
    """Write *body* as a fenced block that reads back as the same body."""
    longest = max((len(run) for run in re.findall(r"^[ \t]*(`{3,})", body, re.MULTILINE)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{info}\n{body}\n{marks}"
