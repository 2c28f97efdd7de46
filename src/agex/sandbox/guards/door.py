"""What a guard gives in place of a receiver whose attribute it has read."""

from __future__ import annotations

from typing import Any

__all__ = ["Door"]


class Door:
    """Answers the one attribute it is asked for with a guarded value."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_value", value)

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "_value")
