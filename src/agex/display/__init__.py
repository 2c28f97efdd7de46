"""What a reader is shown of an object: a page of parts, as HTML for notebooks and as text for terminals.

An object says once what there is to show of it (`Shown.page`). Everything is escaped and of bounded
size, whoever wrote it: pages hold text and pictures, never markup. This room runs no method of the
values it shows, and loads nothing but the standard library.
"""

from agex.display.document import to_html
from agex.display.page import Code, Drawing, Fold, Page, Part, Picture, Scripted, Table, Text, Tone
from agex.display.safety import cut, plain
from agex.display.shown import Shown
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
