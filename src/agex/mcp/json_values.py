"""The arguments and results of a tool: JSON, and nothing else."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import name_of

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock

__all__ = ["from_result", "message_of", "to_json"]

DEPTH = 64
"""Of nested lists and dicts in an argument: what every JSON reader takes."""
ITEMS = 100_000
"""Values in all arguments of one call."""
CHARS = 10_000_000
"""Characters in all arguments of one call."""
MESSAGE_CHARS = 2_000
"""Of what a tool says of its failure."""


def to_json(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of *arguments* that is plain JSON data.

    It must not fail any later: the connection is shared, and writing is where it would break.

    Raises:
        TypeError: there is something that JSON has no word for.
        ValueError: a number or a text that JSON cannot hold, or too much of them.
    """
    allowance = _Allowance()
    return {name: allowance.copy(value, name, 0) for name, value in arguments.items()}


class _Allowance:
    """Copies JSON data while it stays within the limits of one call."""

    def __init__(self) -> None:
        self._items = ITEMS
        self._chars = CHARS

    # Exact types only: what a subclass of the caller's answers may be code of its own.
    def copy(self, value: Any, where: str, depth: int) -> Any:
        self._spend(1, 0)
        if depth > DEPTH:
            raise ValueError(f"{where} is nested too deeply for a tool's argument, or contains itself.")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int or kind is float:
            return _number(value, where)
        if kind is str:
            return self._text(value, where)
        if kind is list or kind is tuple:
            return [self.copy(item, where, depth + 1) for item in value]
        if kind is dict:
            return {self._key(key, where): self.copy(item, where, depth + 1) for key, item in value.items()}
        raise TypeError(
            f"{where}: a tool takes JSON data, not {name_of(kind)}; "
            "give text, numbers, True, False, None, lists and dicts."
        )

    def _key(self, key: Any, where: str) -> str:
        if type(key) is not str:
            raise TypeError(f"{where}: the keys of a dict for a tool are text.")
        return self._text(key, where)

    def _text(self, value: str, where: str) -> str:
        self._spend(0, len(value))
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{where}: text for a tool has no lone surrogates.") from error
        return value

    def _spend(self, items: int, chars: int) -> None:
        self._items -= items
        self._chars -= chars
        if self._items < 0 or self._chars < 0:
            raise ValueError(
                f"A tool takes at most {ITEMS} values and {CHARS} characters a call; send the data in parts."
            )


def _number(value: float, where: str) -> float:
    if type(value) is int and abs(value) >= 1 << 63:
        raise ValueError(f"{where}: an integer for a tool has 64 bits; send a larger one as text.")
    if type(value) is float and not math.isfinite(value):
        raise ValueError(f"{where}: JSON has no {value}; send None or text.")
    return value


def from_result(result: CallToolResult, *, wrapped: bool) -> Any:
    """Return a tool's answer: its structured content where there is one, else its content.

    A text is a str, an image or sound bytes, a link a dict. One block is itself, several are a
    list, none is None.

    Args:
        result: the answer.
        wrapped: whether the tool's schema says that the value stands under ``result``.
    """
    structured = result.structured_content
    if structured is not None:
        alone = wrapped and isinstance(structured, dict) and list(structured) == ["result"]
        return structured["result"] if alone else structured
    blocks = [_block(block) for block in result.content]
    return blocks[0] if len(blocks) == 1 else blocks or None


def _block(block: ContentBlock) -> Any:
    if block.type == "text":
        return block.text
    if block.type == "image" or block.type == "audio":  # noqa: PLR1714 - the checkers follow this form
        return base64.b64decode(block.data)
    if block.type == "resource":
        resource: Any = block.resource
        return resource.text if hasattr(resource, "text") else base64.b64decode(resource.blob)
    return block.model_dump(mode="json", exclude_none=True)


def message_of(result: CallToolResult) -> str:
    """Return what a tool says of its failure, bounded."""
    said = "\n".join(block.text for block in result.content if block.type == "text").strip()
    return said[:MESSAGE_CHARS] or "it says no more"
