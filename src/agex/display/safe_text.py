"""Untrusted text, made fit to be shown."""

from __future__ import annotations

import re

__all__ = ["cut", "plain"]

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Terminals obey them: they move the cursor, write the clipboard, rename the window."""
_DIRECTIONS = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""They show text in another order than it is in (CVE-2021-42574)."""
_SURROGATES = "\ud800-\udfff"
"""No output takes them: UTF-8 cannot hold them."""
_ODD = re.compile(f"[{_CONTROLS}{_DIRECTIONS}{_SURROGATES}]")


def plain(text: str) -> str:
    """Return text with what would not be shown, or would do something, spelled out by its number."""
    exact = str.__str__(text)  # a class of a guest's own may have methods of any kind
    return _ODD.sub(lambda odd: odd[0].encode("unicode_escape").decode(), exact.replace("\r\n", "\n"))


def cut(text: str, limit: int) -> str:
    """Return text of at most *limit* characters and a note: the middle goes."""
    exact = str.__str__(text)
    if len(exact) <= limit:
        return exact
    head = limit * 2 // 3
    tail = limit - head
    return f"{exact[:head]}\n... ({len(exact) - limit:,} characters more) ...\n{exact[len(exact) - tail :]}"
