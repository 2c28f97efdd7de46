"""The text of a value at a prompt, of bounded size."""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = ["echo_text"]

_LARGE = 1_000  # elements; below that a plain repr is both cheap and complete


class _Bounded(reprlib.Repr):
    """Shows the first elements of a large container and says how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = 50
        self.maxstring = self.maxother = self.maxlong = 2_000
        self.maxlevel = 6


def echo_text(value: Any, limit: int) -> str:
    """Give ``repr(value)``, with the middle of a long one cut."""
    large = type(value) in (list, tuple, set, frozenset, dict, str, bytes) and len(value) > _LARGE
    text = _Bounded().repr(value) if large else repr(value)
    if large and not isinstance(value, (str, bytes)):
        text += f"  ({len(value):,} elements)"
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n... [{len(text) - 2 * half:,} characters cut] ...\n{text[-half:]}"
    return text
