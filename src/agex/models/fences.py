"""Fenced blocks of a text: where they begin, what their label says, and where they really end.

Models put fences inside docstrings, indent and quote them, open them behind text, close them on the code's
line, and forget to close them. Python has no backtick outside of strings and comments, so a block of Python
ends at the first marks outside of them. Where a string is left open, and for any other language, the first
line that closes what is open is taken, as in CommonMark.

All of it takes time in proportion to the text: a block's strings are looked through for at most
``MOST_MARKS`` marks.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Fence", "Fences", "fenced", "find_fences", "kind_of", "words_of"]

MOST_MARKS = 32
"""A degenerate reply repeats fences without end; a docstring holds a few."""

_PYTHON = ("python", "py", "ipython", "pycon", "pycon3", "cpython", "sage", "tool_code", "python_action")
_TERMINAL = ("terminal", "bash", "sh", "shell", "console", "zsh", "shellscript", "terminal_action")
_KINDS: dict[str, str] = {
    **dict.fromkeys(_PYTHON, "python_action"),
    **dict.fromkeys(_TERMINAL, "terminal_action"),
    "write_file": "write_file",
    "edit_file": "edit_file",
}
_VERSION = re.compile(r"-?[\d.]+$")
_REPL = re.compile(r"[-_]?(?:repl|console|session|script|code|cell)$")

_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff"
_BLANKS = rf"[ \t\xa0\u202f{_INVISIBLE}]"
_LINE = re.compile(r"^(?P<before>[^\n`]{0,200}?)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]{0,300})$", re.MULTILINE)
_MARGIN = re.compile(rf"{_BLANKS}*(?P<quotes>(?:>[ \t]?)*){_BLANKS}*$")
_INTRODUCES = re.compile(r"(?:.*:|[ \t]*(?:[-*+]|\d{1,3}[.)]))[ \t*_]*$")
_INLINE = re.compile(r"(?P<code>[^`]*[^`\s])\s*(?P<marks>`{3,})$")
_QUOTE = re.compile(r"[ \t]*>[ ]?")
_TOKEN = re.compile(
    r"'''|\"\"\""
    r"|'(?:\\.|[^'\\\n])*+'?|\"(?:\\.|[^\"\\\n])*+\"?"
    r"|#[ \t]*`{3,}[^\n]*|#(?:[^\n`]|`(?!``)|```+(?![ \t]*$))*+"
    r"|`{3,}|^[ \t>]*~{3,}(?=[^\n~]*$)",
    re.MULTILINE | re.DOTALL,
)
_REST_OF_STRING = {
    quote: re.compile(rf"(?:\\.|[^\\{quote[0]}]|{quote[0]}(?!{quote[1:]}))*+{quote}", re.DOTALL)
    for quote in ("'''", '"""')
}


@dataclass(frozen=True, kw_only=True)
class Fence:
    """One fenced block."""

    info: str
    """The label behind the opening marks, e.g. ``python`` or ``write_file path=a.py``."""
    body: str
    """The lines between, without the last line's end."""
    start: int
    """Where its opening line begins in the text."""
    end: int
    """Where the text goes on behind it."""
    is_closed: bool = True
    """Whether it has closing marks of its own."""

    @property
    def kind(self) -> str | None:
        """The action that its label names."""
        return kind_of(self.info)


def kind_of(info: str) -> str | None:
    """Return the action that a label names: ``python3.11``, ``{.python}`` and ``py:main.py`` are Python."""
    words = words_of(info)
    if not words:
        return None
    label = re.split(r"[,:{}();=]", words[0].strip("{}.<>*#").lower())[0]
    if label in _KINDS:
        return _KINDS[label]
    return _KINDS.get(_REPL.sub("", _VERSION.sub("", label)))


def words_of(info: str) -> list[str]:
    """Return the words of a label."""
    try:
        return shlex.split(info)
    except ValueError:  # an unclosed quote
        return info.split()


def find_fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks of *text*, which has Unix line ends, in order."""
    fences = Fences(text)
    fence = fences.first(0)
    while fence is not None:
        yield fence
        fence = fences.first(fence.end)


@dataclass(frozen=True, kw_only=True)
class _Mark:
    """A line with marks."""

    start: int
    """Of the line; ``at`` is that of the marks, ``after`` that of the next line."""
    at: int
    after: int
    before: str
    marks: str
    info: str

    @cached_property
    def margin(self) -> re.Match[str] | None:
        """The text before the marks, where it is blanks and quote signs only."""
        return _MARGIN.match(self.before)

    def counts(self, marks: str) -> bool:
        """Return whether it is a mark in a block opened with *marks*."""
        return self.margin is not None and self.marks.startswith(marks)

    def opens(self) -> bool:
        """Return whether a block may begin here."""
        if self.margin is not None:
            return True
        if self.marks[0] == "~":
            return False
        return kind_of(self.info) is not None or (not self.info and bool(_INTRODUCES.match(self.before)))


class Fences:
    """The fenced blocks of a text, found from any place in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks = [mark for match in _LINE.finditer(text) if (mark := _mark(text, match))]
        self._starts = [mark.start for mark in self._marks]
        self._by_place = {mark.at: mark for mark in self._marks}
        self._closings: dict[str, _Closings] = {}

    def first(self, position: int) -> Fence | None:
        """Return the first block whose opening line begins at *position* or later."""
        for number in range(bisect_left(self._starts, position), len(self._marks)):
            mark = self._marks[number]
            if mark.opens():
                return self._fence(number, mark)
        return None

    def _fence(self, number: int, opening: _Mark) -> Fence:
        inner = _inline(opening)
        if inner is not None:
            label, code = inner
            return Fence(info=label, body=code, start=opening.start, end=opening.after)
        end, after = self._end(number, opening)
        body = self._text[opening.after : end].removesuffix("\n")
        return Fence(
            info=opening.info,
            body=_without_margin(body, opening.margin),
            start=opening.start,
            end=max(after, opening.after),
            is_closed=after > end,
        )

    def _end(self, number: int, opening: _Mark) -> tuple[int, int]:
        """Return where the body ends, and where to read on."""
        if _may_hold_python(opening.info):
            end = self._python_end(opening)
            if end is not None:
                return end
        return self._plain_end(number, opening)

    def _python_end(self, opening: _Mark) -> tuple[int, int] | None:
        position, marks = opening.after, 0
        while (token := _TOKEN.search(self._text, position)) is not None:
            position = token.end()
            if token[0] in _REST_OF_STRING:
                string = _REST_OF_STRING[token[0]].match(self._text, position)
                if string is None:
                    return None
                marks += self._text.count("\n```", position, string.end())
                position = string.end()
                if marks > MOST_MARKS:
                    return None
            elif token[0].lstrip(" \t>").startswith(opening.marks):
                return self._ended(token)
        return len(self._text), len(self._text)

    def _ended(self, token: re.Match[str]) -> tuple[int, int]:
        at = token.end() - len(token[0].lstrip(" \t>"))
        mark = self._by_place.get(at)
        if mark is None or mark.margin is None:  # behind the last line's code
            return at, token.end()
        is_closing = not mark.info or (kind_of(mark.info) is None and self._text[token.end()].isspace())
        # A label opens the next block, whose forgotten closing it stands for; it is not eaten.
        return mark.start, mark.after if is_closing else mark.start

    def _plain_end(self, number: int, opening: _Mark) -> tuple[int, int]:
        closing = self._closing(number, opening)
        if closing is None:
            return len(self._text), len(self._text)
        return (closing.start if closing.margin is not None else closing.at), closing.after

    def _closing(self, number: int, opening: _Mark) -> _Mark | None:
        if opening.marks not in self._closings:
            self._closings[opening.marks] = _Closings(self._marks, opening.marks)
        closings = self._closings[opening.marks]
        following = self._marks[number + 1] if number + 1 < len(self._marks) else None
        is_line = following is not None and following.margin is None and not following.info
        return closings.balanced[number] or (following if is_line else closings.first[number])


class _Closings:
    """Which mark closes a block that was opened with *marks*, by the opening's number.

    A mark of another kind, or a shorter one, is text.

    Attributes:
        balanced: the first that closes more than was opened since; None where there is none.
        first: the first that closes anything.
    """

    def __init__(self, all_marks: list[_Mark], marks: str) -> None:
        depths, depth = [], 0
        for mark in all_marks:
            if mark.counts(marks):
                depth += 1 if mark.info else -1
            depths.append(depth)
        self.balanced: list[_Mark | None] = []
        self.first: list[_Mark | None] = []
        at_depth: dict[int, _Mark] = {}
        closing: _Mark | None = None
        for mark, depth in zip(reversed(all_marks), reversed(depths), strict=True):
            self.balanced.append(at_depth.get(depth - 1))
            self.first.append(closing)
            if mark.counts(marks):
                at_depth[depth] = mark
                closing = closing if mark.info else mark
        self.balanced.reverse()
        self.first.reverse()


def _mark(text: str, match: re.Match[str]) -> _Mark | None:
    info = match["info"].strip(f" \t\xa0{_INVISIBLE}")
    if "`" in info and not _INLINE.match(info):
        return None
    return _Mark(
        start=match.start(),
        at=match.start("marks"),
        after=min(match.end() + 1, len(text)),
        before=match["before"],
        marks=match["marks"],
        info=info,
    )


def _inline(mark: _Mark) -> tuple[str, str] | None:
    """Return label and code of a block that is opened and closed on one line."""
    match = _INLINE.match(mark.info)
    if match is None or match["marks"] != mark.marks:
        return None
    label, _, code = match["code"].strip().partition(" ")
    return (label, code.strip()) if kind_of(label) is not None and code else ("", match["code"].strip())


def _may_hold_python(info: str) -> bool:
    words = words_of(info)
    if not words or kind_of(info) == "python_action":
        return True
    return kind_of(info) == "write_file" and words[-1].endswith((".py", ".pyi"))


def _without_margin(body: str, margin: re.Match[str] | None) -> str:
    """Remove the opening marks' margin from the lines: a list's indent, the signs of a quotation."""
    lines = body.split("\n")
    if margin is None:
        return body
    for _ in range(margin["quotes"].count(">")):
        lines = [_QUOTE.sub("", line, count=1) for line in lines]
    indent = len(margin[0]) if not margin["quotes"] else 0
    return "\n".join(_unindent(line, indent) for line in lines)


def _unindent(line: str, indent: int) -> str:
    blanks = len(line) - len(line.lstrip(" \t\xa0"))
    return line[min(blanks, indent) :]


def fenced(info: str, body: str) -> str:
    """Write *body* as a fenced block that reads back as the same body."""
    longest = max((len(run) for run in re.findall(r"`{3,}", body)), default=2)
    marks = "`" * (longest + 1)
    return f"{marks}{info}\n{body}\n{marks}"
