"""The text that shows the model what its code did. Always bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agex.models.surrogates import encodable

if TYPE_CHECKING:
    from agex.sandbox import Result

__all__ = ["cut_middle", "encodable", "exact", "last_lines", "result_text"]

SILENT = "(The code ran without an error and printed nothing.)"


def cut_middle(text: str, limit: int) -> str:
    """Return *text* in at most *limit* characters and a note; the middle goes, with a note of how much."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    note = f"\n... ({len(text) - limit} characters cut here; print less) ...\n"
    return text[:head] + note + text[len(text) - tail :]


def result_text(result: Result, limit: int, notes: tuple[str, ...] = ()) -> str:
    """Return what a run printed, the value of its last expression and its error, then *notes*."""
    echo = result.echo or ""
    error = result.traceback.strip()
    parts = [part for part in (result.stdout.rstrip("\n"), echo, *notes) if part]
    room = limit - min(len(error), limit // 2)
    shown = [cut_middle("\n".join(parts), room)] if parts else []
    shown += [cut_middle(error, limit // 2)] if error else []
    return encodable("\n".join(shown)) or SILENT


def last_lines(traceback: str, count: int = 3) -> list[str]:
    """Return where an error came from and what it says: the last lines of its traceback."""
    lines = [line for line in traceback.splitlines() if line.strip(" ^~")]
    return lines[-count:]


def exact(text: str) -> str:
    """Return a plain ``str``: a subclass of the agent's own may have methods of any kind."""
    return str.__str__(text)
