"""The protocol of a session's guards, for the rooms below them.

`agex.sandbox.guards.guards.Guards` is the one implementation. Rooms below `guards` are handed a `Membrane`
and use nothing of it but what is declared here.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable
from contextvars import Context
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from agex.sandbox.rules.ruleset import Rules

if TYPE_CHECKING:
    from agex.sandbox.runtime.provenance import Statement

__all__ = [
    "ClassQuestions",
    "HostCalls",
    "Membrane",
    "PolicyQuestions",
    "RunningSession",
    "SessionRecord",
    "StopSwitch",
]


class PolicyQuestions(Protocol):
    """Questions about a session's policy."""

    grants: list[Any]
    """The grants, in order."""
    modules: dict[str, Any]
    """The grants of modules, by import name."""

    @functools.cached_property
    def text(self) -> Rules:
        """The rules of the policy for the text of a program."""
        ...

    def covers(self, root: str) -> bool:
        """Return whether the policy speaks for a package."""
        ...

    def denies(self, class_: type, name: str) -> bool:
        """Return whether guest code may not use a member of a class."""
        ...

    def guard(self, class_: type, name: str) -> Any:
        """Return the guard of a member of a class, None where there is none."""

    def instead(self, class_: type, name: str) -> str | None:
        """Return what to use in place of a member; None where no library says it."""
        ...

    def is_sealed(self, class_: type) -> bool:
        """Return whether guest code may make no instances of a class."""
        ...

    def restricts(self, class_: type) -> bool:
        """Return whether some members of a class are denied."""
        ...


class ClassQuestions(Protocol):
    """Questions about classes, to the registry that knows guest classes."""

    builtins: dict[str, Any]
    """The builtins of the session."""
    module_name: str
    """The very object that is ``__module__`` of guest classes."""

    @property
    def made(self) -> Any:
        """The classes that guest code made."""

    def is_guest(self, class_: type) -> bool:
        """Return whether guest code made a class."""
        ...

    def is_pure(self, class_: type) -> bool:
        """Return whether guest code made a class and all its bases but ``object``."""
        ...

    def is_mark(self, module: object) -> bool:
        """Return whether a ``__module__`` is one that only guest classes have."""
        ...

    def mark(self, name: str) -> str:
        """Return the ``__module__`` for guest classes of a module."""
        ...

    def host_names(self, *class_: type) -> frozenset[str]:
        """Return the names that classes have from the host."""
        ...

    def statement_of(self, class_: type) -> Statement | None:
        """Return the statement that made a guest class."""
        ...

    def is_mixed(self, class_: type) -> bool:
        """Return whether a guest class has a base from the host."""
        ...

    def may_store_on_class(self, class_: type, name: str) -> bool:
        """Return whether guest code may assign an attribute of a class of its own."""
        ...

    def succeed(self, class_: type, made: type) -> None:
        """Note that a class was made to stand for a guest class."""


class HostCalls(Protocol):
    """Guest code that runs for the host, behind limits."""

    def asking(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that may run guest code."""

    def wait(self, classes: Iterable[type]) -> None:
        """Let classes' methods run no guest code until `go_on`."""

    def go_on(self) -> None:
        """End `wait`."""


class StopSwitch(Protocol):
    """The flag that stops a run."""

    @property
    def is_on(self) -> bool:
        """Whether the run is to stop."""
        ...

    def turn_on(self) -> None:
        """Stop the run at its next check."""

    def turn_off(self) -> None:
        """Let the session run again."""


class RunningSession(Protocol):
    """A session as its running code is traced back to it."""

    @property
    def globals(self) -> dict[str, Any]:
        """The variables of the session."""
        ...

    def note_file(self, name: str, source: str) -> None:
        """Keep the lines of a program for tracebacks that guest code and its model see."""
        ...

    def stop(self, ending: BaseException) -> NoReturn:
        """End the run with an error that guest code cannot catch."""
        ...


class SessionRecord(Protocol):
    """The data of a session while it lasts."""

    builtins: dict[str, Any]
    closures: dict[tuple[Any, int], tuple[Any, Any]]
    files: Any
    notes: dict[str, Any]
    program: types.CodeType | None
    run: Context | None
    sources: dict[str, list[str]]
    threads: set[int]


class Membrane(SessionRecord, Protocol):
    """The checks of a session."""

    @property
    def policy(self) -> PolicyQuestions:
        """The policy of the session."""
        ...

    @property
    def classes(self) -> ClassQuestions:
        """The classes of the session."""
        ...

    @property
    def hooks(self) -> HostCalls:
        """Calls of guest code by the host."""
        ...

    @property
    def importer(self) -> Any:
        """The import statement of the session."""

    @property
    def imports(self) -> Any:
        """The modules of the session's workspace, None without one."""

    @property
    def switch(self) -> StopSwitch:
        """The flag that stops a run."""
        ...

    def is_guest_function(self, function: Any) -> bool:
        """Return whether guest code made a function."""
        ...

    def is_own(self, receiver: Any) -> bool:
        """Return whether a receiver is an instance of a guest class, or the class."""
        ...

    def readable(self, receiver: Any, name: str) -> Any:
        """Return the attribute that guest code reads."""

    def is_listed(self, value: Any, name: str) -> bool:
        """Return whether ``dir`` shows guest code a name."""
        ...

    def shown_class(self, class_: type) -> type:
        """Return a class as guest code sees it."""
        ...

    def getattr(self, receiver: Any, name: Any, /, *default: Any) -> Any:
        """Do the work of ``getattr`` for guest code."""

    def import_(self, name: Any, /) -> Any:
        """Return a module as the import statement of guest code does."""

    def check_store(self, receiver: Any, name: str) -> Any:
        """Return what guest code may assign an attribute of."""

    def check_storable(self, receiver: Any, name: str) -> None:
        """Check the name of an attribute that guest code assigns by a builtin."""

    def setattr(self, receiver: Any, name: Any, value: Any, /) -> None:
        """Do the work of ``setattr`` for guest code."""

    def vars(self, value: Any, /) -> Any:
        """Do the work of ``vars`` for guest code."""

    def check_matched(self, subject: Any, delicate: tuple[str, ...]) -> None:
        """Check the attributes that a class pattern reads."""
