"""Secrets stay off a tape: arguments named like keys are masked, and their values wherever they stand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from agex.contract import same_value

__all__ = ["MASK", "Redact", "Redaction", "is_key", "is_same", "matches"]

MASK = "<masked>"

Redact: TypeAlias = Callable[[str, Any], Any]
"""Called with the name of an argument, of an input, or with ``function()`` for a result, and the value.

It returns the value to keep; another one than it was given masks it.
"""

_KEYS = frozenset(
    "password passwd pwd passphrase secret secrets token apikey authorization auth credential credentials "
    "bearer cookie".split()
)
_PAIRS = ("api_key", "private_key", "secret_key", "access_key", "client_key", "signing_key", "encryption_key")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_SHORTEST = 4
"""Characters of a secret that is looked for elsewhere: a shorter one stands everywhere by chance."""


def is_key(name: object) -> bool:
    """Return whether something of this name is likely to be a secret: ``api_key``, ``dbPassword``."""
    if not isinstance(name, str):
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    joined = "_".join(words)
    return not _KEYS.isdisjoint(words) or any(pair in joined for pair in _PAIRS)


class Redaction:
    """The secrets of one tape.

    Args:
        redact: the host's own rule.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        self._redact = redact
        self._secrets: set[str] = set()

    def masks(self, name: str, value: Any) -> bool:
        """Return whether a value is to be left out; its texts are secrets from now on."""
        if not is_key(name):
            return False
        self._learn(value)
        return True

    def kept(self, name: str, value: Any) -> tuple[Any, bool]:
        """Return the value to keep of one that is not masked as a whole, and whether the host changed it."""
        kept = value if self._redact is None else self._redact(name, value)
        is_changed = kept is not value
        if is_changed:
            self._learn(value, without=kept)
        return self._without_keys(kept), is_changed

    def _without_keys(self, value: Any) -> Any:
        """Return plain data with the values masked that stand under the name of a key."""
        if type(value) is dict:
            found = {}
            for name, each in value.items():
                is_masked = each is not None and is_key(name)
                if is_masked:
                    self._learn(each)
                found[name] = MASK if is_masked else self._without_keys(each)
            return found if any(found[name] is not value[name] for name in value) else value
        if type(value) in (list, tuple):
            parts = [self._without_keys(each) for each in value]
            is_same = all(one is other for one, other in zip(parts, value, strict=True))
            return value if is_same else type(value)(parts)
        return value

    def _learn(self, value: Any, without: Any = None) -> None:
        left = set(_texts(without))
        self._secrets |= {text for text in _texts(value) if len(text) >= _SHORTEST and text not in left}

    def _forms(self, *, quoted: bool) -> list[str]:
        """Return the texts that must not stand on the tape, the longest first, also as code has them."""
        forms: set[str] = set()
        for each in self._secrets:
            shown = {repr(each), json.dumps(each), json.dumps(each, ensure_ascii=False)}
            in_code = each.replace("\\", "\\\\").replace("'", "\\'")
            forms |= {each, in_code, *(text[1:-1] for text in shown), *(shown if quoted else ())}
        return sorted(forms, key=lambda text: (-len(text), text))

    def scrubbed(self, value: Any, *, quoted: bool = False) -> Any:
        """Return JSON with the secrets masked in all its texts.

        With *quoted*, the quotes around a secret go with it, for another text may have others. Not in code.
        """
        secrets = self._forms(quoted=quoted)
        return _scrubbed(value, secrets) if secrets else value

    def is_in(self, data: bytes) -> bool:
        """Return whether bytes hold a secret."""
        found = (
            form.encode(code, "replace")
            for form in self._forms(quoted=False)
            for code in ("utf-8", "utf-32-le")
        )
        return any(each in data for each in found)


def _texts(value: Any, depth: int = 6) -> Iterable[str]:
    kind = type(value)
    if isinstance(value, str):
        yield str.__str__(value)
    elif kind in (bytes, bytearray):
        yield bytes(value).decode("utf-8", "replace")
    elif kind is int:
        yield str(value)
    elif kind is dict and depth:
        for each in value.values():
            yield from _texts(each, depth - 1)
    elif kind in (list, tuple, set, frozenset) and depth:
        for each in value:
            yield from _texts(each, depth - 1)


def _scrubbed(value: Any, secrets: list[str]) -> Any:
    if type(value) is str:
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if type(value) is dict:
        return {_scrubbed(name, secrets): _scrubbed(each, secrets) for name, each in value.items()}
    return [_scrubbed(each, secrets) for each in value] if type(value) is list else value


_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,16}\b")


def matches(recorded: str, text: str) -> bool:
    """Return whether a text is the recorded one, in which a mask stands for any text.

    Addresses of memory, which differ from run to run, are taken for the same.
    """
    if recorded == text:
        return True
    recorded, text = _ADDRESS.sub("0x", recorded), _ADDRESS.sub("0x", text)
    first, *rest = recorded.split(MASK)
    if not rest:
        return first == text
    *middle, last = rest
    if not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:  # the first place is as good as any later one, so this takes no time to speak of
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def is_same(recorded: Any, value: Any) -> bool:
    """Return whether a value is the recorded one, in which a mask stands for any value."""
    kind = type(recorded)
    if kind is str and MASK in recorded:
        return recorded == MASK or (type(value) is str and matches(recorded, value))
    if kind is dict and type(value) is dict:
        return recorded.keys() == value.keys() and all(
            is_same(recorded[name], value[name]) for name in recorded
        )
    if kind in (list, tuple) and type(value) is kind:
        pairs = zip(recorded, value, strict=False)
        return len(recorded) == len(value) and all(is_same(one, other) for one, other in pairs)
    return same_value(value, recorded)
