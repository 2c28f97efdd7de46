"""Codecs that rooms further out provide when they are imported.

Without them events are plain dicts, and stored guest code is not rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from agex.values import GuestCode

__all__ = ["EventCodec", "events", "guest_code", "provide"]


class EventCodec(Protocol):
    """Events to bytes and back."""

    def dump(self, event: Any) -> bytes: ...

    def load(self, data: bytes) -> Any: ...

    def stamp(self, event: Any, commit: str, parent: str | None) -> None:
        """Write into an event which commit holds it."""
        ...


class _Dicts:
    def dump(self, event: Any) -> bytes:
        return json.dumps(event).encode()

    def load(self, data: bytes) -> Any:
        return json.loads(data)

    def stamp(self, event: Any, commit: str, parent: str | None) -> None:
        event["commit_hash"], event["parent_hash"] = commit, parent


class _Provided:
    """The codecs provided last."""

    def __init__(self) -> None:
        self.events: EventCodec = _Dicts()
        self.guest: Callable[[], GuestCode] | None = None


_provided = _Provided()


def events() -> EventCodec:
    """Return the codec of events."""
    return _provided.events


def guest_code() -> GuestCode | None:
    """Return the codec of guest code for a host that reads a state without an agent; None for none."""
    return None if _provided.guest is None else _provided.guest()


def provide(codec: EventCodec, guest: Callable[[], GuestCode]) -> None:
    """Set the codec of events, and the maker of the codec of guest code."""
    _provided.events, _provided.guest = codec, guest
