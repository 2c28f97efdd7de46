"""Pages as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agex.display.page import Code, Drawing, Fold, Page, Part, Picture, Scripted, Table, Text
from agex.display.safe_text import cut, plain

__all__ = ["heading", "lines_of", "table_lines", "to_text"]

TEXT_CHARS = 2_000
"""Of one text."""
CELL_CHARS = 60
ROWS = 20
COLUMNS = 8
PARTS = 24
"""Of one page; of more, the first and the last."""
PAGE_CHARS = 40_000
"""Of a page with all in it."""
_INDENT = "  "


def to_text(page: Page) -> str:
    """Draw a page as lines of text, which obey no terminal."""
    return cut("\n".join(_page(page)), PAGE_CHARS)


def heading(page: Page) -> str:
    """Return the first line of a page."""
    return " · ".join(_line(each) for each in (page.sign + page.title, *page.facts) if each)


def lines_of(part: Part) -> Iterator[str]:
    """Draw a part of a page."""
    if isinstance(part, Fold):
        yield from _page(part.page)
        return
    if part.label:
        yield _line(part.label)
    match part:
        case Text() | Code():
            yield from plain(cut(part.text, TEXT_CHARS)).split("\n")
        case Table():
            yield from table_lines(part)
        case Picture():
            yield f"[a picture, {_line(part.media_type)}, {len(part.data):,} bytes]"
        case Scripted() | Drawing():
            yield "[drawn in notebooks]"


def table_lines(part: Table) -> Iterator[str]:
    """Draw the rows of a table in columns."""
    rows = [[_line(cell) for cell in row[:COLUMNS]] for row in part.rows[:ROWS]]
    every = [[_line(name) for name in part.head[:COLUMNS]], *rows] if part.head else rows
    widths: dict[int, int] = {}
    for row in every:
        for number, cell in enumerate(row):
            widths[number] = max(widths.get(number, 0), len(cell))
    for row in every:
        yield "  ".join(cell.ljust(widths[number]) for number, cell in enumerate(row)).rstrip()
    if len(part.rows) > ROWS:
        yield f"... {len(part.rows) - ROWS:,} more rows"
    if any(len(row) > COLUMNS for row in part.rows[:ROWS]):
        yield "... more columns"
    if part.note:
        yield _line(part.note)


def _page(page: Page) -> Iterator[str]:
    yield heading(page)
    for part in _chosen(page.parts):
        for line in lines_of(part):
            yield f"{_INDENT}{line}".rstrip()


def _chosen(parts: Sequence[Part]) -> Sequence[Part]:
    if len(parts) <= PARTS:
        return parts
    note = Text(text=f"... {len(parts) - PARTS:,} more are not shown here ...")
    return [*parts[: PARTS // 2], note, *parts[len(parts) - PARTS // 2 :]]


def _line(text: str) -> str:
    """Return text on one line of bounded length."""
    line = " ".join(plain(str.__str__(text)[: 4 * CELL_CHARS]).split())
    return line if len(line) <= 2 * CELL_CHARS else f"{line[: 2 * CELL_CHARS - 3]}..."
