"""Pages as HTML.

It stands by itself in a cell: styles are inline, nothing has an id or a class, nothing is loaded. Colours
are the reader's own: text inherits them, lines and grounds are a translucent grey, and the few signal
colours can be read on light and dark grounds. What a page holds is text; tags are made here only.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Sequence

from agex.display.page import Code, Drawing, Fold, Page, Part, Picture, Scripted, Table, Text
from agex.display.safe_text import cut, plain

__all__ = ["to_html"]

TEXT_CHARS = 6_000
"""Of one text."""
CELL_CHARS = 300
ROWS = 50
COLUMNS = 20
PARTS = 60
"""Of one page; of more, the first and the last."""
PAGE_CHARS = 400_000
"""Of a page with all in it, beside pictures: a browser lays that out without a pause."""
PICTURE_BYTES = 6 * 1024 * 1024
"""Of all pictures and scripted figures together, as encoded: one figure brings 4.8 MB of plotly."""
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""SVG is not among them: it is a document."""

COLORS = {"plain": "rgba(128,128,128,.6)", "good": "#2f8f4e", "bad": "#d9463e", "asking": "#b07712"}
"""Each has a contrast of 3:1 or more with white and with the grounds of dark themes (WCAG 1.4.11)."""
_GROUND = "rgba(128,128,128,.12)"
_LINE = "1px solid rgba(128,128,128,.35)"
_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.92em;line-height:1.45"
_BLOCK = (
    f"margin:4px 0;padding:6px 8px;{_MONO};color:inherit;background:{_GROUND};border:0;border-radius:4px;"
    "white-space:pre-wrap;overflow-wrap:anywhere;max-height:26em;overflow:auto;unicode-bidi:plaintext"
)
_CELL = (
    f"padding:2px 12px 2px 0;text-align:left;vertical-align:top;border:0;border-bottom:{_LINE};color:inherit"
)


def to_html(page: Page) -> str:
    """Draw a page as a fragment of HTML, for a notebook."""
    return _Writer().page(page)


class _Writer:
    """Draws one page while there is room."""

    def __init__(self) -> None:
        self._chars = PAGE_CHARS
        self._bytes = PICTURE_BYTES

    def page(self, page: Page) -> str:
        return (
            f'<div style="margin:4px 0;padding:2px 0 2px 10px;border-left:3px solid {COLORS[page.tone]};'
            f'color:inherit"><div>{_title(page)}</div>{"".join(self._parts(page.parts))}</div>'
        )

    def _parts(self, parts: Sequence[Part]) -> Iterator[str]:
        left_out = len(parts) - PARTS
        for number, part in enumerate(parts):
            if left_out > 0 and PARTS // 2 <= number < PARTS // 2 + left_out:
                if number == PARTS // 2:
                    yield _note(f"… {left_out:,} more are not shown here …")
                continue
            if self._chars <= 0:
                yield _note(f"… the last {len(parts) - number:,} are not shown here: the page is full.")
                return
            yield self._part(part)

    def _part(self, part: Part) -> str:
        match part:
            case Fold():
                return self._fold(part)
            case Picture():
                return self._picture(part)
            case Drawing():
                return self._part(part.draw())
            case Scripted():
                return self._scripted(part)
            case Table():
                return self._counted(_table(part))
            case Text() | Code():
                return self._counted(_block(part))

    def _counted(self, drawn: str) -> str:
        self._chars -= len(drawn)
        return drawn

    def _fold(self, part: Fold) -> str:
        if not part.page.parts:
            return self.page(part.page)
        self._counted(title := _title(part.page))
        return (
            f'<details{" open" if part.open else ""} style="margin:4px 0;padding:2px 0 2px 10px;'
            f'border-left:3px solid {COLORS[part.page.tone]}"><summary style="cursor:pointer">{title}'
            f"</summary>{''.join(self._parts(part.page.parts))}</details>"
        )

    def _picture(self, part: Picture) -> str:
        size = len(part.data)
        if part.media_type not in PICTURES or not self._spend(size * 4 // 3):
            return _note(f"A picture of {size:,} bytes ({part.media_type}) is not shown here.")
        data = base64.b64encode(part.data).decode()
        return (
            f'<div style="margin:4px 0">{_label(part.label)}<img alt="{_text(part.label or "a picture")}" '
            f'style="max-width:100%;max-height:480px" src="data:{part.media_type};base64,{data}"></div>'
        )

    def _scripted(self, part: Scripted) -> str:
        if not self._spend(len(part.document)):
            return _note(f"{part.label} is too large to be shown here.")
        # Without allow-same-origin its origin is nobody's: it has no cookies, no parent, no notebook.
        return (
            f'<iframe sandbox="allow-scripts" referrerpolicy="no-referrer" title="{_text(part.label)}" '
            f'style="width:100%;height:{part.height:d}px;border:0" srcdoc="{html.escape(part.document)}">'
            f"</iframe>"
        )

    def _spend(self, size: int) -> bool:
        if size > self._bytes:
            return False
        self._bytes -= size
        return True


def _text(text: str, limit: int = CELL_CHARS) -> str:
    """Return text as HTML that says exactly that."""
    return html.escape(plain(cut(text, limit)))


def _title(page: Page) -> str:
    color = "inherit" if page.tone == "plain" else COLORS[page.tone]
    facts = "".join(f" · {_text(fact)}" for fact in page.facts)
    return (
        f'<b><span style="color:{color}">{page.sign}</span><bdi>{_text(page.title)}</bdi></b>'
        f'<span style="opacity:.75">{facts}</span>'
    )


def _label(label: str) -> str:
    return f'<div style="opacity:.75;margin-top:4px">{_text(label)}</div>' if label else ""


def _note(text: str) -> str:
    return f'<div style="opacity:.75;font-style:italic;margin:4px 0">{_text(text)}</div>'


def _block(part: Text | Code) -> str:
    bad = isinstance(part, Text) and part.bad
    style = f"{_BLOCK};box-shadow:inset 3px 0 {COLORS['bad']}" if bad else _BLOCK
    return f'{_label(part.label)}<pre style="{style}">{_text(part.text, TEXT_CHARS)}</pre>'


def _table(part: Table) -> str:
    head = "".join(f'<th style="{_CELL}">{_text(name)}</th>' for name in part.head[:COLUMNS])
    rows = "".join(_row(row, named=not part.head) for row in part.rows[:ROWS])
    notes = [part.note] if part.note else []
    if len(part.rows) > ROWS:
        notes.insert(0, f"… {len(part.rows) - ROWS:,} more rows")
    if any(len(row) > COLUMNS for row in part.rows[:ROWS]):
        notes.append("more columns are not shown")
    return (
        f'{_label(part.label)}<div style="overflow-x:auto"><table style="border-collapse:collapse;'
        f'margin:4px 0;border:0;color:inherit;{_MONO}">{f"<thead><tr>{head}</tr></thead>" if head else ""}'
        f"<tbody>{rows}</tbody></table></div>{_note('; '.join(notes)) if notes else ''}"
    )


def _row(row: Sequence[str], *, named: bool) -> str:
    cells = []
    for number, cell in enumerate(row[:COLUMNS]):
        tag = 'th scope="row"' if named and number == 0 else "td"
        style = f"{_CELL};white-space:pre-wrap;unicode-bidi:plaintext"
        cells.append(f'<{tag} style="{style}">{_text(cell)}</{tag.split(maxsplit=1)[0]}>')
    return f"<tr>{''.join(cells)}</tr>"
