"""The parts of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Code", "Drawing", "Fold", "Page", "Part", "Picture", "Scripted", "Table", "Text", "Tone"]

Tone: TypeAlias = Literal["plain", "good", "bad", "asking"]
"""Tone of a page: its sign, and its colour where there are colours."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text as it is, line by line."""

    text: str
    label: str = ""
    """Its kind, in a word or two."""
    bad: bool = False
    """It tells of an error."""


@dataclass(frozen=True, kw_only=True)
class Code:
    """A program, or another text in some language."""

    text: str
    label: str = ""
    language: str = "python"
    """As Pygments calls it."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of short texts."""

    rows: Sequence[Sequence[str]] = field(repr=False)
    head: Sequence[str] = ()
    """The columns' names; without them, the first column names the rows."""
    label: str = ""
    note: str = ""
    """A note on the rows that are left out."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """An encoded picture."""

    data: bytes
    media_type: str
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A whole HTML document with scripts, which is shown by itself: it cannot reach the page around it."""

    document: str
    label: str
    """The text to show where it cannot be drawn."""
    height: int = 450
    """Pixels."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure that is rendered lazily, when its page is displayed."""

    draw: Callable[[], Text | Picture | Scripted]
    label: str
    """The text to show where it is not drawn."""


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A page inside another, which opens and closes."""

    page: Page
    open: bool = False


Part: TypeAlias = Text | Code | Table | Picture | Scripted | Drawing | Fold
"""Any of them."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """The page of one object."""

    title: str
    facts: Sequence[str] = ()
    """A few words each; they stand beside the title."""
    parts: Sequence[Part] = field(default=(), repr=False)
    tone: Tone = "plain"

    @property
    def sign(self) -> str:
        """The mark of a tone where there are no colours."""
        return {"plain": "", "good": "✓ ", "bad": "✗ ", "asking": "? "}[self.tone]
