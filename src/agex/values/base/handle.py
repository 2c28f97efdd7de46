"""What stands for a function, class or registered object while a stream is loaded.

A stream that could put a guest function or of the host on the unpickler's stack could have it
called. So what can be called comes as a handle, which cannot, and is unwrapped by those who fill
variables, fields and cells.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Handle", "unwrapped"]


class Handle:
    """Holds what must not be called while loading."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


def unwrapped(value: Any) -> Any:
    """Return what a handle holds; any other value as it is."""
    return value.target if type(value) is Handle else value
