"""State that lives in memory, with the objects themselves."""

from __future__ import annotations

import keyword
import re
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from agex.errors import StateError

__all__ = ["Live"]


class Live(MutableMapping[str, Any]):
    """Keep an agent's variables in memory from task to task, whatever their type.

    It is also the host's view of them: ``state["x"] = 1`` gives the next task a variable
    ``x``. Nothing is copied, so what agents change in place is changed here too.

    Tasks may share one state at the same time. Each starts from the variables as they are
    then and, at the end of each of its actions, gives back the names that it bound or
    deleted; of two tasks that bind one name, the later wins. The inputs of a task are not
    kept unless its code binds their names anew. Whoever shares a state also shares what is
    in it: a function or module that one agent left there can be used by the next.

    Attributes:
        cache: the dict that agents see as ``cache``.
        events: the events of all tasks that used this state, oldest first.
    """

    def __init__(self, variables: Mapping[str, Any] | None = None) -> None:
        self._variables: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.cache: dict[str, Any] = {}
        self.events: list[Any] = []
        self.update(variables or {})

    def snapshot(self) -> dict[str, Any]:
        """Return the variables as they are now, in a new dict of the same objects."""
        with self._lock:
            return dict(self._variables)

    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Take over what changed between two namespaces of a task, by identity.

        Names bound to another object are set, names that are gone are deleted, and every
        other name stays as it is here, whoever set it meanwhile.
        """
        with self._lock:
            for name, value in after.items():
                if name not in before or before[name] is not value:
                    self._variables[name] = value
            for name in before.keys() - after.keys():
                self._variables.pop(name, None)

    def __getitem__(self, name: str) -> Any:
        with self._lock:
            return self._variables[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
            raise StateError(
                f"{name!r} cannot be a variable of an agent's code; write state['{_fixed(name)}']."
            )
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


def _fixed(name: str) -> str:
    """Return a name like *name* that a variable can have."""
    word = re.sub(r"\W+", "_", name).strip("_")
    return word if word.isidentifier() and not keyword.iskeyword(word) else f"v_{word}"
