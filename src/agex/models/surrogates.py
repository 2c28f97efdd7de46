r"""Halves of characters: JSON can hold them alone (``"\ud83d"``), UTF-8 cannot.

Two halves that belong together are joined, in one text or in two pieces of a stream. One that stays alone is
spelled out, which in a string of Python code is the same value.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Joined", "encodable"]


def encodable(text: str) -> str:
    """Return *text* as UTF-8 can hold it; most texts come back as they are."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return joined.encode("utf-8", "backslashreplace").decode()
    return text


class Joined:
    """Passes pieces of a text on; a half at the end of one waits for the next.

    Args:
        tell: called with each piece that UTF-8 can hold.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._half = ""

    def __call__(self, piece: str) -> None:
        """Take a piece."""
        piece = self._half + piece
        is_half = piece != "" and "\ud800" <= piece[-1] <= "\udbff"
        self._half = piece[-1] if is_half else ""
        whole = piece[:-1] if is_half else piece
        if whole:
            self._tell(encodable(whole))

    def end(self) -> None:
        """Pass on the half that no other followed."""
        half, self._half = self._half, ""
        if half:
            self._tell(encodable(half))
