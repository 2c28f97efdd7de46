"""The view that one task has of a state, and the record of who wrote a name last.

Two parties that share objects notice a lost update by that record.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from agex.state.working.tracked_files import FileSpace

__all__ = ["RunLog", "View", "Writes"]


class RunLog(Protocol):
    """Entries of a state beside its variables, as one run writes them.

    What is put goes with the next commit of the task.
    """

    def put(self, key: str, value: Any) -> tuple[Any, ...]:
        """Put an entry; return the parts that it cannot keep."""
        ...

    def remove(self, key: str) -> None:
        """Take an entry away."""
        ...

    def read(self, key: str) -> Any:
        """Return an entry as it is committed; None where there is none.

        Raises:
            StateCorrupt: it is damaged.
        """
        ...

    def keys(self, prefix: str) -> list[str]:
        """Return the keys of the committed entries that begin so, sorted."""
        ...

    def is_same(self, one: Any, other: Any) -> bool:
        """Return whether two values would be written alike."""
        ...

    def claim(self, run: str) -> None:
        """Be the one that carries a run on; who did before can write nothing of it any more."""
        ...

    def write(self, message: str) -> str:
        """Commit what was put and the events until now, and no variable or file.

        Returns:
            The commit.

        Raises:
            StateConflict: another writer moved the branch, or carries the run on. Nothing is written.
        """
        ...

    def abandon(self) -> None:
        """Drop what the task did to variables and files since its last commit, and leave."""
        ...

    def held(self) -> AbstractContextManager[Any]:
        """Keep other tasks of the state from reading and writing meanwhile."""
        ...


class View(abc.ABC):
    """The part of a state that one task works on, from its beginning to its end.

    Attributes:
        cache: the dict that the task's code sees as ``cache``.
        files: the files of the workspace, by path.
        log: where a run of a task is kept, where the state can.
    """

    cache: dict[str, Any]
    files: FileSpace
    log: RunLog | None = None

    @abc.abstractmethod
    def snapshot(self, *, packed: bool = False) -> dict[str, Any]:
        """Return the variables as they are now, in a new dict of the same objects.

        Args:
            packed: give variables that a worker made as `agex.values.Packed`, for another worker.
        """

    def act(self, known: Mapping[str, Any], cache: Any) -> None:  # noqa: B027 - most states need not know
        """Take note that the task's code begins to run, over these variables and this cache."""

    @abc.abstractmethod
    def write_back(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Take over what changed between two namespaces of a task, by identity.

        Names bound to another object are set, names that are gone are deleted, and every
        other name stays as it is here, even if another party set it meanwhile.
        """

    @property
    @abc.abstractmethod
    def imports(self) -> dict[str, str]:
        """The names that import statements bound, each with the modules to import for it.

        They are no variables of the state: each task imports them anew, under its own grants.
        """

    @abc.abstractmethod
    def write_imports(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Take over what changed between the imports of two namespaces of a task."""

    def packed_cache(self) -> Any:
        """Return the cache for a worker: as `agex.values.Packed`, where a worker made it."""
        return self.cache

    @abc.abstractmethod
    def write_cache(self, cache: Any) -> None:
        """Take over the cache as a worker gave it back."""

    @abc.abstractmethod
    def record(self, event: Any) -> None:
        """Take in an event of a task."""

    @abc.abstractmethod
    def settle(self, message: str, *, last: bool = False) -> str | None:
        """Keep what an action did: variables, cache and the events since the last time.

        Args:
            message: what the commit is called.
            last: the task is over.

        Returns:
            The commit, where the state has commits.

        Raises:
            StateConflict: a task that ran at the same time changed the same variable before.
        """

    def leave(self) -> None:  # noqa: B027 - most states need not know
        """Take note that the task is over, and that nothing more is to be kept of it."""


class Writes:
    """The last write of each name, in order. A party is any object; None is the host."""

    def __init__(self) -> None:
        self.count = 0
        """Writes so far: a party that begins now has seen all of them."""
        self._last: dict[str, tuple[int, object]] = {}

    def note(self, name: str, party: object) -> None:
        """Take note that a party bound or deleted a name."""
        self.count += 1
        self._last[name] = self.count, party

    def is_lost(self, name: str, party: object, since: int) -> bool:
        """Return whether *party*, which began at *since*, would overwrite what it has not seen."""
        number, last = self._last.get(name, (0, party))
        return number > since and last is not party

    def is_by(self, name: str, party: object) -> bool:
        """Return whether a party wrote a name last."""
        return name in self._last and self._last[name][1] is party
