"""Handlers that print what happens in a task while it happens.

In a terminal they use colours; elsewhere the text is plain. Give them as ``on_event=`` and
``on_token=``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agex.agent.call.events import Event
from agex.display import Code, Part, cut, plain
from agex.display.terminal import heading, lines_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from agex.agent.call.call import Token

__all__ = ["pprint_events", "pprint_tokens"]

SHOWN_CHARS = 2_000
"""Of one text; the whole of it is in the run."""
COLORS = {"plain": "", "good": "green", "bad": "red", "asking": "yellow"}


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


def _drawn(part: Part) -> RenderableType:
    from rich.console import Group
    from rich.syntax import Syntax
    from rich.text import Text

    if isinstance(part, Code) and part.text:
        code = Syntax(
            plain(cut(part.text, SHOWN_CHARS)), part.language, background_color="default", word_wrap=True
        )
        return Group(Text(plain(part.label), style="dim"), code) if part.label else code
    return Text("\n".join(lines_of(part)))
