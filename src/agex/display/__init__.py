"""Objects as pages: HTML for notebooks, text for terminals.

An object describes itself once (`Shown.page`). Everything is escaped and bounded: pages hold text and
pictures, never markup. This room runs no method of the values it shows, and loads nothing but the standard
library.

Reading order: ``page`` (the parts), ``rich_display`` (the base class of objects with a page), ``document``
(HTML), ``terminal`` (text), ``safe_text``.
"""

from agex.display.document import to_html
from agex.display.page import Code, Drawing, Fold, Page, Part, Picture, Scripted, Table, Text, Tone
from agex.display.rich_display import Shown
from agex.display.safe_text import cut, plain
from agex.display.terminal import to_text

__all__ = [
    "Code",
    "Drawing",
    "Fold",
    "Page",
    "Part",
    "Picture",
    "Scripted",
    "Shown",
    "Table",
    "Text",
    "Tone",
    "cut",
    "plain",
    "to_html",
    "to_text",
]
