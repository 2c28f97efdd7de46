"""The interface of executors and sessions, and the executor of the level ``none``.

`agex.sandbox.Session` satisfies `GuestSession` as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, TypeAlias

from agex.sandbox import Limits, Policy, Result, Session

if TYPE_CHECKING:
    from agex.sandbox.runtime.workspace_files import Files

__all__ = [
    "Executor",
    "GuestNames",
    "GuestRuns",
    "GuestSession",
    "GuestVariables",
    "InProcessExecutor",
    "Level",
    "SessionControl",
    "Wall",
    "names_of",
]

Level: TypeAlias = Literal["none", "process", "kernel", "container"]
"""Where code runs, from the weakest boundary to the strongest."""


@dataclass(frozen=True, kw_only=True)
class Wall:
    """One mechanism that confines guest code, whatever the code does."""

    name: str
    """Its name: ``"landlock"``."""
    detail: str
    """Its form: ``"ABI 7"``."""


class GuestVariables(Protocol):
    """The variables of guest code, as the host reads and writes them."""

    packs: bool
    """Whether variables are returned as `agex.values.Packed`."""

    @property
    def namespace(self) -> dict[str, Any]: ...

    @property
    def modules(self) -> dict[str, str]: ...

    @property
    def kept(self) -> dict[str, Any]: ...

    def look_up(self, name: str) -> Any: ...

    def add(self, names: Mapping[str, Any]) -> None: ...

    def import_again(self, modules: Mapping[str, str]) -> None: ...


class GuestNames(Protocol):
    """The names that guest code finds beside its variables, and those that it defined."""

    @property
    def builtins(self) -> Mapping[str, Any]: ...

    @property
    def defined(self) -> frozenset[str]: ...

    def bind(self, name: str, value: Any) -> None: ...

    def is_guest_function(self, value: object) -> bool: ...


class GuestRuns(Protocol):
    """Runs of programs and calls of functions under the limits of one session."""

    @property
    def is_running(self) -> bool: ...

    def run(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result: ...

    async def arun(self, source: str, filename: str = "<agent>", *, echo: bool = True) -> Result: ...

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result: ...

    async def acall(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Result: ...


class SessionControl(Protocol):
    """The beginning and the end of a session, and of the run that is on in it."""

    def open(self) -> None: ...

    def close(self) -> None: ...

    def stop(self, ending: BaseException) -> NoReturn: ...

    def interrupt(self, ending: BaseException) -> None: ...

    def paused(self) -> AbstractContextManager[None]: ...


class GuestSession(GuestVariables, GuestNames, GuestRuns, SessionControl, Protocol):
    """A namespace in which guest code runs, as often as wanted. See `agex.sandbox.Session`.

    Values given to the methods are host objects. Where the code runs in another process, they are
    copied there; functions and objects that cannot be copied stay, and are used from there.
    """


class Executor(Protocol):
    """A level of isolation, ready for use."""

    level: Level

    def walls(self) -> tuple[Wall, ...]:
        """Return the mechanisms that confine guest code at this level."""
        ...

    def session(
        self,
        policy: Policy,
        limits: Limits,
        namespace: Mapping[str, Any],
        *,
        classes: Iterable[type] = (),
        files: Files | None = None,
    ) -> GuestSession:
        """Open a session for one task.

        Args:
            policy: of its code.
            limits: of one run.
            namespace: its first variables.
            classes: host classes whose instances may cross.
            files: the workspace, which stays in the host; None for no files.

        Raises:
            IsolationUnavailable: it cannot be had.
        """
        ...

    def close(self) -> None:
        """End all processes of this level."""
        ...


def names_of(values: Iterable[str]) -> Iterator[str]:
    """Return the names that variables can have, out of untrusted names."""
    for name in values:
        if type(name) is str and name.isidentifier():
            yield name


class InProcessExecutor:
    """Runs guest code where the host runs: a guard rail for cooperative code, not a boundary."""

    level: Level = "none"

    def walls(self) -> tuple[Wall, ...]:
        return ()

    def session(
        self,
        policy: Policy,
        limits: Limits,
        namespace: Mapping[str, Any],
        *,
        classes: Iterable[type] = (),
        files: Files | None = None,
    ) -> Session:
        return Session(policy, limits, namespace, files=files)

    def close(self) -> None:
        """Do nothing: this level has no process."""
