"""The variables of code that ran in a worker: bytes, until one is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agex import values

__all__ = ["Variables"]


class Variables(Mapping[str, Any]):
    """Variables as a run left them, each decoded when it is read.

    Functions and instances of classes that the code wrote stay where it ran: in their place is a
    ``NotKept``, which says so.

    Args:
        packed: the variables, as the session gave them back.
    """

    def __init__(self, packed: Mapping[str, Any]) -> None:
        self._packed = dict(packed)

    def __getitem__(self, name: str) -> Any:
        one = {name: self._packed[name]}
        return values.opened(one, allow=values.Allow(()), guest=None)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)

    def __repr__(self) -> str:
        return f"Variables({', '.join(self)})"
