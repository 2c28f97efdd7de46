"""The codecs by which a versioned state keeps events and guest code."""

from __future__ import annotations

from agex.agent.call.events import Event, event_from_json
from agex.sandbox import KeptCode, Sandbox
from agex.sandbox.stdlib.functools import CachedProperty
from agex.state.commits.codec_hooks import provide
from agex.values.base.function_wrappers import wraps

__all__ = ["KeptCode", "remember"]


class KeptEvents:
    """Events as JSON. The commit that holds one is not written into it: it is known from where it lies."""

    def dump(self, event: Event) -> bytes:
        return event.model_copy(update={"commit_hash": None, "parent_hash": None}).model_dump_json().encode()

    def load(self, data: bytes) -> Event:
        return event_from_json(data)

    def stamp(self, event: Event, commit: str, parent: str | None) -> None:
        event.stamp(commit, parent)


def _default() -> KeptCode:
    return KeptCode(Sandbox())


def remember() -> None:
    """Register the codecs of events and guest code with the state room."""
    provide(KeptEvents(), _default)
    wraps(CachedProperty, "func")
