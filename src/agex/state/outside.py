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
    events: EventCodec = _Dicts()
    guest: Callable[[], GuestCode] | None = None


class _Events:
    """The codec that is provided at the time it is used."""

    def dump(self, event: Any) -> bytes:
        return _Provided.events.dump(event)

    def load(self, data: bytes) -> Any:
        return _Provided.events.load(data)

    def stamp(self, event: Any, commit: str, parent: str | None) -> None:
        _Provided.events.stamp(event, commit, parent)


events: EventCodec = _Events()


def guest_code() -> GuestCode | None:
    """Return what makes the code of guests again, for a host that reads a state without an agent."""
    return None if _Provided.guest is None else _Provided.guest()


def provide(codec: EventCodec, guest: Callable[[], GuestCode]) -> None:
    """Say how events are kept, and how the code of guests is made again."""
    _Provided.events, _Provided.guest = codec, guest
