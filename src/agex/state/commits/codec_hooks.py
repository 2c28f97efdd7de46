"""What a state needs of rooms further out. They put it here when they are imported.

Without them events are plain dicts, and the code of guests is not made again.
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
    """What was put here last."""

    def __init__(self) -> None:
        self.events: EventCodec = _Dicts()
        self.guest: Callable[[], GuestCode] | None = None


_provided = _Provided()


def events() -> EventCodec:
    """Return what turns events into bytes and back."""
    return _provided.events


def guest_code() -> GuestCode | None:
    """Return what makes the code of guests again, for a host that reads a state without an agent."""
    return None if _provided.guest is None else _provided.guest()


def provide(codec: EventCodec, guest: Callable[[], GuestCode]) -> None:
    """Say how events are kept, and how the code of guests is made again."""
    _provided.events, _provided.guest = codec, guest
