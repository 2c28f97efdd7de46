"""The replacement of one passage of a text: found exactly, else by its words."""

from __future__ import annotations

import difflib

__all__ = ["PassageError", "replaced"]

_NEAREST = 3
_SHOWN = 12
"""Lines of the text that are shown where a passage is not found."""


class PassageError(ValueError):
    """The passage is not there, or there more than once; the message shows where to look."""


def replaced(text: str, search: str, replace: str) -> str:
    """Return *text* with the one passage *search* replaced.

    Where it does not stand there exactly, the lines are compared without the white space around
    them, and the new ones are indented as the old ones are.

    Raises:
        PassageError: there is no such passage, or more than one.
    """
    if not search.strip():
        raise PassageError("The passage to look for is empty; to write a whole file, use write_file.")
    count = text.count(search)
    if count == 1:
        return text.replace(search, replace)
    if count > 1:
        raise _ambiguous(search, [text[:at].count("\n") + 1 for at in _all(text, search)])
    lines, wanted = text.split("\n"), search.strip("\n").split("\n")
    starts = _fitting(lines, wanted)
    if not starts:
        raise _missing(lines, wanted)
    if len(starts) > 1:
        raise _ambiguous(search, [start + 1 for start in starts])
    start = starts[0]
    new = _indented(replace.strip("\n"), wanted, lines[start : start + len(wanted)])
    return "\n".join([*lines[:start], *new, *lines[start + len(wanted) :]])


def _all(text: str, search: str) -> list[int]:
    found, at = [], text.find(search)
    while at >= 0:
        found.append(at)
        at = text.find(search, at + 1)
    return found


def _fitting(lines: list[str], wanted: list[str]) -> list[int]:
    """Return where *wanted* stands, but for white space around its lines."""
    stripped = [line.split() for line in lines]
    words = [line.split() for line in wanted]
    return [
        start for start in range(len(lines) - len(words) + 1) if stripped[start : start + len(words)] == words
    ]


def _indented(replace: str, wanted: list[str], there: list[str]) -> list[str]:
    """Return the new lines, indented as the old ones are beside how they were asked for."""
    pairs = [(w, t) for w, t in zip(wanted, there, strict=True) if w.strip()]
    asked, has = (line[: len(line) - len(line.lstrip())] for line in pairs[0])
    if asked == has or not replace:
        return replace.split("\n") if replace else []
    if has.startswith(asked):
        return [has[len(asked) :] + line if line.strip() else line for line in replace.split("\n")]
    return [has + line.removeprefix(asked) if line.strip() else line for line in replace.split("\n")]


def _ambiguous(search: str, numbers: list[int]) -> PassageError:
    where = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
    return PassageError(
        f"The passage stands there {len(numbers)} times, at lines {where}; give more of the lines around the "
        "one you mean. Nothing was changed."
    )


def _missing(lines: list[str], wanted: list[str]) -> PassageError:
    """Say that nothing fits, and show the lines that are nearest."""
    first = next(line.strip() for line in wanted if line.strip())
    near = difflib.get_close_matches(first, {line.strip() for line in lines if line.strip()}, _NEAREST, 0.5)
    shown = [f"{number:5d}  {line}" for number, line in enumerate(lines, start=1) if line.strip() in near][
        :_SHOWN
    ]
    hint = "The nearest lines are:\n" + "\n".join(shown) if shown else "No line there is like its first."
    return PassageError(f"There is no such passage. Nothing was changed. {hint}")
