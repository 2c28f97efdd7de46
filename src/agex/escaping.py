"""Escape untrusted text so that it can stand inside a line of trusted text."""

from __future__ import annotations

import re

__all__ = ["block", "fence", "hanging", "line"]

_FENCE = re.compile(r"`{3,}|~{3,}")


def line(text: str) -> str:
    """Return text as one line: line ends and other unprintable characters are spelled out.

    So no name and no message can pretend to be a part of the text that it stands in. A fence of code is
    written with other quotes, for it would open or close a block.
    """
    exact = str.__str__(text)  # a guest class may have methods of any kind
    if not exact.isprintable():
        exact = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode() for char in exact
        )
    return _FENCE.sub(lambda found: "'" * len(found[0]), exact) if "```" in exact or "~~~" in exact else exact


def hanging(text: str) -> str:
    """Return text whose first line alone begins at the margin, each line as `line` writes it."""
    first, *rest = str.__str__(text).split("\n")
    return "\n".join([line(first), *(f"    {line(each)}" if each.strip() else "" for each in rest)])


def fence(text: str) -> str:
    """Return the backticks that open and close a block of *text*: more than stand together in it."""
    longest = max((len(found[0]) for found in re.finditer(r"`{3,}", text)), default=2)
    return "`" * (longest + 1)


def block(text: str, info: str = "") -> str:
    """Return text as a fenced block that nothing in it closes."""
    quotes = fence(text)
    return f"{quotes}{info}\n{text}\n{quotes}"
