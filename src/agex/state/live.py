"""State that lives in memory, with the objects themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from agex.state.base import State, require_name
from agex.state.files import FileSpace

__all__ = ["Live"]


class Live(State):
    """Keep an agent's variables in memory from task to task, whatever their type.

    Nothing is copied, so what agents change in place is changed here too, and there is no
    history to go back to.
    """

    def __init__(self, variables: Mapping[str, Any] | None = None) -> None:
        self._variables: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._events: list[Any] = []
        self.cache = {}
        self.files = FileSpace()
        self.update(variables or {})

    @property
    def events(self) -> list[Any]:
        return self._events

    def snapshot(self) -> dict[str, Any]:
        with self._lock:
            return dict(self._variables)

    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        with self._lock:
            for name, value in after.items():
                if name not in before or before[name] is not value:
                    self._variables[name] = value
            for name in before.keys() - after.keys():
                self._variables.pop(name, None)

    def record(self, event: Any) -> None:
        self._events.append(event)

    def settle(self, message: str, *, last: bool = False) -> None:
        """Do nothing: the objects themselves are here."""

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            return self._variables[name]

    def __setitem__(self, name: str, value: Any) -> None:
        require_name(name)
        with self._lock:
            self._variables[name] = value

    def __delitem__(self, name: str) -> None:
        with self._lock:
            del self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def __len__(self) -> int:
        with self._lock:
            return len(self._variables)

    def __repr__(self) -> str:
        return f"Live({', '.join(sorted(self.snapshot()))})"
