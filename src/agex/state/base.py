"""What an agent needs of any state."""

from __future__ import annotations

import abc
import keyword
import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from agex.display import Shown
from agex.errors import StateError
from agex.state.working.tracked_files import FileSpace

__all__ = ["Past", "State", "View", "require_name"]


class View(abc.ABC):
    """What one task has of a state, from its beginning to its end.

    Attributes:
        cache: the dict that the task's code sees as ``cache``.
        files: the files of the workspace, by path.
    """

    cache: dict[str, Any]
    files: FileSpace

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
        other name stays as it is here, whoever set it meanwhile.
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


class State(Shown, View, MutableMapping[str, Any]):
    """An agent's variables, its ``cache`` and its events, kept from task to task.

    It is also the host's view of them: ``state["x"] = 1`` gives the next task a variable ``x``.

    Tasks may share one state at the same time. Changes of different variables go together; of two
    tasks that change the same variable, each since it began, the later one ends with
    ``StateConflict``. The inputs of a task are not kept unless its code binds their names anew.
    Whoever shares a state also shares what is in it: a function or module that one agent left there
    can be used by the next.

    Attributes:
        files: the files of the workspace, by path. They are shared as they are: what one task
            writes, another that runs at the same time sees at once.
        events: the events of all tasks that used this state, oldest first.
    """

    @property
    @abc.abstractmethod
    def events(self) -> Sequence[Any]: ...

    def admit(self, classes: Iterable[type], guest: Any) -> None:
        """Learn what a task brings: classes of the host whose instances are kept, and who makes its code.

        Args:
            classes: of the host.
            guest: an `agex.values.GuestCode`.
        """

    def view(self, caller: View | None = None) -> View:
        """Return what a task has of this state that begins now.

        Args:
            caller: the view of the task whose code calls it, if that has one of this state.
        """
        return self

    def sketch(self, name: str) -> Any:
        """Return a variable to be shown: nothing runs of the agent's code that is stored.

        Its functions are empty, and its classes have names and fields only.

        Raises:
            KeyError: there is no such variable.
            UnpicklableVariableError: it could not be kept, or cannot be read again.
        """
        return self[name]

    def recent(self) -> list[str]:
        """Return the variables that the last commit changed; all of them, where there are no commits."""
        return list(self)


class Past(Shown, Mapping[str, Any]):
    """What a state was at some commit; read-only."""

    @property
    @abc.abstractmethod
    def cache(self) -> Mapping[str, Any]: ...

    @property
    @abc.abstractmethod
    def events(self) -> Sequence[Any]: ...

    @abc.abstractmethod
    def sketch(self, name: str) -> Any:
        """Return a variable to be shown, see `State.sketch`."""

    @abc.abstractmethod
    def recent(self) -> list[str]:
        """Return the variables that the last commit changed."""


def require_name(name: str) -> None:
    """Refuse a name that no variable can have.

    Raises:
        StateError: with a name that one can have.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise StateError(f"{name!r} cannot be a variable of an agent's code; write state['{_fixed(name)}'].")


def _fixed(name: str) -> str:
    """Return a name like *name* that a variable can have."""
    word = re.sub(r"\W+", "_", name).strip("_")
    return word if word.isidentifier() and not keyword.iskeyword(word) else f"v_{word}"
