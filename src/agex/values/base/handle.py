"""Handle of a function, class or registered object while a stream is loaded.

A stream that could put a guest or host function on the unpickler's stack could have it called. So callables
come as handles, which cannot be called, and are unwrapped where variables, fields and cells are filled.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Handle", "unwrapped"]


class Handle:
    """Holds an object that must not be called while loading."""

    __slots__ = ("target",)

    def __init__(self, target: Any) -> None:
        self.target = target


def unwrapped(value: Any) -> Any:
    """Return the target of a handle; any other value as it is."""
    return value.target if type(value) is Handle else value
