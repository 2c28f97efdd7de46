"""The interface of every state, and of a state as it was at a commit."""

from __future__ import annotations

import abc
import keyword
import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

from agex.display import Shown
from agex.errors import StateError
from agex.state.working.view import View

__all__ = ["Forks", "Past", "State", "View", "require_name"]


class State(Shown, View, MutableMapping[str, Any]):
    """An agent's variables, its ``cache`` and its events, kept from task to task.

    The host reads and writes them too: ``state["x"] = 1`` gives the next task a variable ``x``.

    Tasks may share one state at the same time. Changes of different variables go together; of two
    tasks that change the same variable, each since it began, the later one ends with
    ``StateConflict``. The inputs of a task are not kept unless its code binds their names anew.
    Agents that share a state share its content: a function or module that one agent left there can be
    used by the next.

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
        """Return the view of this state for a task that begins now.

        Args:
            caller: the view of the task whose code calls it, if that has one of this state.
        """
        return self

    def forks(self, label: str, count: int) -> Forks:
        """Begin *count* copies of this state, for tasks that run side by side; one may be taken over.

        Raises:
            StateError: this kind of state cannot be copied.
        """
        raise StateError(f"{type(self).__name__} states cannot be copied; give Live() or Versioned(...).")

    def sketch(self, name: str) -> Any:
        """Return a variable to be shown; no stored guest code runs.

        Its functions are empty, and its classes have names and fields only.

        Raises:
            KeyError: there is no such variable.
            UnpicklableVariableError: it could not be kept, or cannot be read again.
        """
        return self[name]

    def recent(self) -> list[str]:
        """Return the variables that the last commit changed; all of them, where there are no commits."""
        return list(self)


class Forks(Protocol):
    """Copies of a state as it was at one moment.

    Attributes:
        states: the copies, in order.
    """

    @property
    def states(self) -> Sequence[State]: ...

    def take(self, number: int) -> str | None:
        """Let the state be what copy *number*, from 0, has become; return the commit, where there are some.

        Raises:
            StateConflict: another task or the host changed the same meanwhile. Nothing is taken.
        """
        ...

    def drop(self, *, keep: int | None = None) -> None:
        """Let go of the copies, but for one."""
        ...


class Past(Shown, Mapping[str, Any]):
    """A state as it was at a commit; read-only."""

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
