"""A long conversation in fewer words: its beginning and its last turns whole, the turns between in short.

It is shortened in large steps, to half of what it may be. Between two of them messages are only appended,
so a provider's cache of the prefix holds for many turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from agex.agent.rendering.output_text import cut_middle
from agex.models.actions import Action
from agex.models.base import Message

__all__ = ["MOST_TOKENS", "shortened"]

MOST_TOKENS = 60_000
"""Of one request, by estimate: half of what a model of 128,000 reads. Each turn is charged for all of it."""
CHARS_A_TOKEN = 3
"""Reckoned with care: code has about 3.5."""
IMAGE_TOKENS = 1_600
"""Of one picture at the size it is shown in; providers reckon 1,100 to 1,600."""
BEGINNING = 2
"""Messages that never change: the rules and the task."""
WHOLE = 4
"""Messages at the end that stay as they are: the last two turns."""
CODE_CHARS = 1_200
SHOWN_CHARS = 400

_NOTE = "(shortened; print again what you need of it)"
_LEFT_OUT = (
    Message(role="assistant", content="(Earlier turns, left out here.)"),
    Message(role="user", content="What they made is still there: variables, functions, imports."),
)
"""In place of turns for which there is no space even in short."""


def shortened(messages: Sequence[Message], limit: int = MOST_TOKENS) -> list[Message]:
    """Return *messages* as they are, or if they take more than *limit* tokens, in about half of it.

    The rules, the task and the last two turns stay whole, however long they are.
    """
    kept = list(messages)
    if _size(kept) <= limit or len(kept) <= BEGINNING + WHOLE:
        return kept
    beginning, end = kept[:BEGINNING], kept[-WHOLE:]
    between = [_in_short(message) for message in kept[BEGINNING:-WHOLE]]
    space = limit // 2 - _size(beginning) - _size(end)
    if _size(between) > space:
        while between and _size([*_LEFT_OUT, *between]) > space:
            between = between[2:]
        between = [*_LEFT_OUT, *between]
    return [*beginning, *between, *end]


def _size(messages: Sequence[Message]) -> int:
    return sum(_tokens(message) for message in messages)


def _tokens(message: Message) -> int:
    actions = message.reply.actions if message.reply is not None else ()
    text = max(len(message.content), sum(len(_text(action)) for action in actions))
    return text // CHARS_A_TOKEN + 1 + IMAGE_TOKENS * len(message.images)


def _in_short(message: Message) -> Message:
    """Return a message in short, without pictures and as plain text, whatever form its reply had."""
    if message.role != "assistant":
        return Message(role=message.role, content=_cut(message.content, SHOWN_CHARS))
    if message.reply is None:
        return message
    called = [text for text in map(_text, message.reply.actions) if text not in message.content]
    text = "\n\n".join([message.content, *called])
    return Message(role="assistant", content=_cut(text, CODE_CHARS))


def _text(action: Action) -> str:
    return "\n".join(str(value) for name, value in vars(action).items() if name != "kind")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit + len(_NOTE) else f"{cut_middle(text, limit)}\n{_NOTE}"
