"""Handlers that print what happens in a task while it happens.

In a terminal they use colours; elsewhere the text is plain. Give them as ``on_event=`` and
``on_token=``.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from agex.agent.call.events import Event
from agex.display import Code, Part, cut, plain
from agex.display.terminal import heading, lines_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.syntax import SyntaxTheme

    from agex.agent.call.call import Token

__all__ = ["pprint_events", "pprint_tokens"]

SHOWN_CHARS = 2_000
"""Of one text; the whole of it is in the run."""
COLORS = {"plain": "", "good": "green", "bad": "red", "asking": "magenta"}
"""Of the terminal's own palette; yellow and bright colours cannot be read on a light background."""


def pprint_events(event: Event, console: Console | None = None) -> None:
    """Print one event, to standard output where no console is given."""
    from rich.console import Console
    from rich.text import Text

    console = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
    page = event.page()
    console.print(Text(heading(page), style=f"bold {COLORS[page.tone]}".strip()))
    for part in page.parts:
        console.print(_drawn(part))


def pprint_tokens(token: Token) -> None:
    """Print a piece of a model's answer to standard output as it comes."""
    sys.stdout.write(plain(token))
    sys.stdout.flush()


@functools.cache
def _theme() -> SyntaxTheme:
    """Return the colours of code, which can be read on light and on dark backgrounds."""
    from pygments import token as kinds  # type: ignore[import-untyped,unused-ignore]
    from rich.style import Style
    from rich.syntax import ANSISyntaxTheme

    return ANSISyntaxTheme(
        {
            kinds.Token: Style(),
            kinds.Comment: Style(italic=True, dim=True),
            kinds.Keyword: Style(color="magenta"),
            kinds.Operator.Word: Style(color="magenta"),
            kinds.Name.Function: Style(bold=True),
            kinds.Name.Class: Style(bold=True),
            kinds.String: Style(color="green"),
            kinds.Number: Style(color="cyan"),
        }
    )


def _drawn(part: Part) -> RenderableType:
    from rich.console import Group
    from rich.syntax import Syntax
    from rich.text import Text

    if isinstance(part, Code) and part.text:
        syntax = Syntax("", part.language, theme=_theme(), background_color="default")
        code = syntax.highlight(plain(cut(part.text, SHOWN_CHARS)))  # a `Syntax` itself cuts long lines
        code.rstrip()
        return Group(Text(plain(part.label), style="dim"), code) if part.label else code
    return Text("\n".join(lines_of(part)))
