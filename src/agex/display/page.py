"""What a page is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Code", "Drawing", "Fold", "Page", "Part", "Picture", "Scripted", "Table", "Text", "Tone"]

Tone: TypeAlias = Literal["plain", "good", "bad", "asking"]
"""How things stand: it gives a page its sign, and its colour where there are colours."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """Text as it is, line by line."""

    text: str
    label: str = ""
    """What it is, in a word or two."""
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
    """What the rows leave out."""


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
    """What it shows, where it cannot be shown."""
    height: int = 450
    """Pixels."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What takes a while to draw: it is drawn where it is seen, not where it is told."""

    draw: Callable[[], Text | Picture | Scripted]
    label: str
    """What it shows, where it is told."""


@dataclass(frozen=True, kw_only=True)
class Fold:
    """A page inside another, which opens and closes."""

    page: Page
    open: bool = False


Part: TypeAlias = Text | Code | Table | Picture | Scripted | Drawing | Fold
"""Any of them."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What there is to show of one object."""

    title: str
    facts: Sequence[str] = ()
    """A few words each; they stand beside the title."""
    parts: Sequence[Part] = field(default=(), repr=False)
    tone: Tone = "plain"

    @property
    def sign(self) -> str:
        """What the tone looks like without colours."""
        return {"plain": "", "good": "✓ ", "bad": "✗ ", "asking": "? "}[self.tone]
