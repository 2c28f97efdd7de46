"""The turns that another model took on the same task, as the next model is told of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agex import escaping as printable
from agex.agent.loop.loop import Tried
from agex.agent.rendering.output_text import cut_middle, quoted
from agex.models.actions import Action
from agex.models.base import Reply

__all__ = ["handover"]

MOST_TURNS = 4
"""Turns that are told; of earlier ones, how many there were."""
CODE_CHARS = 1_500
SHOWN_CHARS = 600
LAST_CHARS = 3_000
"""Of what the last turn showed."""
MOST_NAMES = 60


def handover(tried: Sequence[Tried], names: Collection[str]) -> str:
    """Return the turns of another model in short, and the names that its code made.

    Args:
        tried: its answers, and what each was shown.
        names: variables, functions and classes that are there.
    """
    count = f"{len(tried)} turn{'' if len(tried) == 1 else 's'}"
    parts = (
        [f"Another model worked on this task before you, for {count}, and did not finish it."]
        if tried
        else []
    )
    told = list(enumerate(tried, start=1))[-MOST_TURNS:]
    for number, (reply, seen) in told:
        is_last = number == len(tried)
        shown = cut_middle(seen.text, LAST_CHARS if is_last else SHOWN_CHARS)
        parts.append(f"Its turn {number} was:\n{_written(reply)}\nIt was shown:\n{quoted(shown)}")
    if tried and names:
        listed = sorted(names)[:MOST_NAMES]
        more = f" and {len(names) - len(listed)} more" if len(names) > len(listed) else ""
        parts.append(f"What its code made is still there: {', '.join(map(printable.line, listed))}{more}.")
    return "\n\n".join(parts)


def _written(reply: Reply) -> str:
    texts = [_text(action) for action in reply.actions] or [reply.text or "(no text)"]
    return printable.block(cut_middle("\n\n".join(texts), CODE_CHARS), "python")


def _text(action: Action) -> str:
    return "\n".join(str(value) for name, value in vars(action).items() if name != "kind")
