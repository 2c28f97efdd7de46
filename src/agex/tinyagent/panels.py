"""A run shown in the terminal while it happens: a panel for each thing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from agex.agent.call.events import (
    ActionEvent,
    ErrorEvent,
    Event,
    FailEvent,
    OutputEvent,
    SuccessEvent,
    TaskStartEvent,
)
from agex.agent.rendering.output_text import cut_middle
from agex.display import plain
from agex.tinyagent.result import FinalAnswer

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["show_panel"]

SHOWN_CHARS = 4_000
"""Of one panel; the whole of it is in the result."""


def show_panel(event: Event) -> None:
    """Print one event of a run to standard output."""
    from rich.console import Console
    from rich.panel import Panel

    title, body, colour = _shown(event)
    console = Console(file=sys.stdout, highlight=False)
    console.print(Panel(body, title=title, title_align="left", border_style=colour))


def _shown(event: Event) -> tuple[str, RenderableType, str]:
    match event:
        case TaskStartEvent():
            return "Task", _text(str(event.inputs.get("task", ""))), "blue"
        case ActionEvent():
            spent = f"{event.usage.input_tokens}+{event.usage.output_tokens} tokens · {event.seconds:.1f} s"
            return f"Step {event.turn} · {spent}", _code(event), "cyan"
        case OutputEvent():
            colour = "red" if event.error else "white"
            return f"Seen at step {event.turn} · {event.seconds:.2f} s", _text(event.text), colour
        case SuccessEvent() if isinstance(event.result, FinalAnswer):
            checked = event.result.verified_by
            told = f"\n\nVerified by: {checked}" if type(checked) is str else ""
            return "Final answer", _text(event.result.text + told), "green"
        case FailEvent() | ErrorEvent():
            return "Failed", _text(event.message), "red"
        case _:
            return type(event).__name__.removesuffix("Event"), _text(event.summary()), "white"


def _code(event: ActionEvent) -> RenderableType:
    from rich.syntax import Syntax

    if not event.actions:
        return _text(event.text)
    return Syntax(_plain(event.summary()), "python", background_color="default", word_wrap=True)


def _text(text: str) -> RenderableType:
    from rich.text import Text

    return Text(_plain(text))


def _plain(text: str) -> str:
    """Return text in bounds; what a terminal would obey is spelt out."""
    return plain(cut_middle(text, SHOWN_CHARS))
