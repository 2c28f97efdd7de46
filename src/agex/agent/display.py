"""Handlers that print what happens in a task while it happens.

In a terminal they use colours; elsewhere the text is plain. Give them as ``on_event=`` and
``on_token=``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from agex.agent.event import ActionEvent, ErrorEvent, Event, OutputEvent, TaskStartEvent

if TYPE_CHECKING:
    from rich.console import Console

    from agex.agent.call import Token

__all__ = ["pprint_events", "pprint_tokens"]

SHOWN_CHARS = 2_000
"""Of one event; the whole of it is in the run."""


def pprint_events(event: Event, console: Console | None = None) -> None:
    """Print one event, to standard output where no console is given."""
    from rich.console import Console
    from rich.text import Text

    console = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(_head(event), style="bold red" if _is_bad(event) else "bold"))
    body = _cut(event.summary())
    if body:
        console.print(_code(body) if isinstance(event, ActionEvent) and event.actions else Text(body))


def pprint_tokens(token: Token) -> None:
    """Print a piece of a model's answer to standard output as it comes."""
    sys.stdout.write(token)
    sys.stdout.flush()


def _head(event: Event) -> str:
    name = type(event).__name__.removesuffix("Event")
    head = f"{event.agent}.{event.task} · {'start' if isinstance(event, TaskStartEvent) else name.lower()}"
    turn = f" · turn {event.turn}" if event.turn else ""
    return f"{head}{turn}{_cost(event)}"


def _cost(event: Event) -> str:
    if isinstance(event, ActionEvent):
        return f" · {event.usage.input_tokens}+{event.usage.output_tokens} tokens · {event.seconds:.1f} s"
    if isinstance(event, OutputEvent):
        return f" · {event.seconds:.2f} s"
    return ""


def _is_bad(event: Event) -> bool:
    return isinstance(event, ErrorEvent) or (isinstance(event, OutputEvent) and event.error)


def _code(body: str) -> Any:
    from rich.syntax import Syntax

    return Syntax(body, "python", background_color="default", word_wrap=True)


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= SHOWN_CHARS
        else f"{text[:SHOWN_CHARS]}\n... ({len(text) - SHOWN_CHARS} more characters)"
    )
