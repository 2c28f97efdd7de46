"""The live view of a run in a terminal: events above, the model's text below."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from agex.agent import ActionEvent, Event, OutputEvent, Token
from agex.agent.views.printing import pprint_events

__all__ = ["Progress"]

LINES = 12
"""Of what the model is writing, the last ones."""
KEPT_CHARS = 4_000
"""Of what the model is writing, more than those lines hold."""


class Progress:
    """Prints events as they come, and below them a spinner with what is being done and was spent.

    Where the output is no terminal there is no spinner, and only the events are printed.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._spinner = Spinner("dots")
        self._started = time.monotonic()
        self._writing = ""
        self._turn = 1
        self._tokens = 0
        self._executing = False
        self._live = Live(self, console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def event(self, event: Event) -> None:
        """Take in an event."""
        self._writing = ""
        self._executing = isinstance(event, ActionEvent) and bool(event.actions)
        if isinstance(event, ActionEvent):
            self._tokens += event.usage.tokens
        if isinstance(event, OutputEvent):
            self._turn = event.turn + 1
        pprint_events(event, self._console)

    def token(self, token: Token) -> None:
        """Take in a piece of what the model writes."""
        self._turn = token.turn
        self._writing = (self._writing + token)[-KEPT_CHARS:]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        doing = "running its code" if self._executing else "writing" if self._writing else "thinking"
        seconds = time.monotonic() - self._started
        self._spinner.update(
            text=f"turn {self._turn} · {doing} · {self._tokens:,} tokens · {seconds:.0f} s · Ctrl-C cancels"
        )
        lines = self._writing.splitlines()
        if len(lines) > LINES:
            lines = ["... (what is above comes in full when it is written)", *lines[1 - LINES :]]
        tail = "\n".join(lines)
        yield Group(Text(tail, style="dim"), self._spinner) if tail else self._spinner
