"""The interface of executors and sessions, and the executor of the level ``none``.

`agex.sandbox.Session` satisfies `GuestSession` as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, TypeAlias, get_args

from agex.errors import DefinitionError
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
    "Python",
    "SessionControl",
    "Wall",
    "names_of",
    "resolve_python",
]

Level: TypeAlias = Literal["none", "process", "kernel", "container"]
"""Where code runs, from the weakest boundary to the strongest."""

Python: TypeAlias = Literal["guarded", "full"]
"""Whether guest code is guarded, or is CPython's own with every installed package."""


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

    def begin(self) -> None: ...

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
        python: Python = "guarded",
    ) -> GuestSession:
        """Open a session for one task.

        Args:
            policy: of its code.
            limits: of one run.
            namespace: its first variables.
            classes: host classes whose instances may cross.
            files: the workspace, which stays in the host; None for no files.
            python: the interpreter of its code.

        Raises:
            DefinitionError: this level cannot have that interpreter.
            IsolationUnavailable: it cannot be had.
        """
        ...

    def close(self) -> None:
        """End all processes of this level."""
        ...


_FULL_BY_DEFAULT: frozenset[Level] = frozenset({"kernel", "container"})
"""The levels that run all of Python unless told otherwise."""


_FULL_MEMORY_MB = 1024
"""The least address space of full Python: a thread takes 72 MB of it, and libraries hang without."""
_LIMITS_SPACE: frozenset[Level] = frozenset({"process", "kernel"})
"""The levels whose limit of memory is one of address space."""


def resolve_python(python: Python | None, level: Level, memory_mb: int | None = None) -> Python:
    """Return the interpreter of guest code at a level.

    Args:
        python: the setting; None for the default of the level, which is guarded where the limit of memory is
            too small for full Python.
        level: where the code runs.
        memory_mb: the limit of its memory.

    Raises:
        DefinitionError: it is no interpreter, or one that this level or this limit cannot have.
    """
    is_small = level in _LIMITS_SPACE and memory_mb is not None and memory_mb < _FULL_MEMORY_MB
    if python is None:
        return "full" if level in _FULL_BY_DEFAULT and not is_small else "guarded"
    if python not in get_args(Python):
        raise DefinitionError(f"python={python!r} is none of: {', '.join(get_args(Python))}.")
    if python == "full" and level == "none":
        raise DefinitionError(
            "python='full' has no guards, so at isolation='none' the code could do all that this process "
            "may do. Use isolation='kernel' or 'container', which are boundaries, or python='guarded'."
        )
    if python == "full" and is_small:
        raise DefinitionError(
            f"max_memory_mb={memory_mb} is too little for python='full', whose libraries and threads need "
            f"{_FULL_MEMORY_MB:,} MB of address space; give that much, or python='guarded'."
        )
    return python


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
        python: Python = "guarded",
    ) -> Session:
        resolve_python(python, self.level)
        return Session(policy, limits, namespace, files=files)

    def close(self) -> None:
        """Do nothing: this level has no process."""
