"""The record of one thing that the code of an agent may use."""

from __future__ import annotations

import inspect
import keyword
from dataclasses import dataclass, field, fields
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any, Literal, TypeAlias

from agex.agent.registration.access import Access
from agex.agent.registration.marks import marks, require_marks
from agex.errors import DefinitionError

__all__ = ["TAKEN", "Kind", "Registration", "add", "is_async"]

Kind: TypeAlias = Literal["function", "task", "class", "module", "object"]

TAKEN = frozenset(
    {"cache", "dir", "help", "inputs", "print", "task_clarify", "task_fail", "task_success", "view_image"}
)
"""Names that guest code already has."""


@dataclass(frozen=True, kw_only=True)
class Registration(Access):
    """One thing that guest code may use, and how. Checked when made."""

    kind: Kind
    name: str
    """The name in guest code; for a module, its import name."""
    target: Any = field(repr=False)

    @classmethod
    def of(cls, target: Any, *, kind: Kind, name: str, access: Access) -> Registration:
        """Return the record of *target* with the settings of *access*.

        Raises:
            DefinitionError: the name or a setting cannot work for it.
        """
        return cls(kind=kind, name=name, target=target, **access.settings())

    def __post_init__(self) -> None:
        super().__post_init__()
        parts = self.name.split(".") if self.kind == "module" else [self.name]
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
            raise DefinitionError(
                f"{self.name!r} cannot be a name in the agent's code; give another, e.g. name='lookup'."
            )
        if self.name in TAKEN:
            raise DefinitionError(
                f"The agent's code already has a {self.name!r} of its own; register under another name."
            )
        if self.name.startswith("__") and self.name.endswith("__"):
            raise DefinitionError(f"{self.name!r} is a name of Python's own; register under another name.")
        self._require_bools()
        self._require_timeout()
        self._settle_members()
        require_marks(self)

    def _require_bools(self) -> None:
        for setting in ("constructable", "recursive", "host_fs_access", "network_access"):
            if not isinstance(value := getattr(self, setting), bool):
                raise DefinitionError(f"{setting}={value!r} is neither True nor False.")

    def _settle_members(self) -> None:
        """Spell the members as the target has them."""
        if not self.configure and self.kind not in {"class", "module", "object"}:
            return
        from agex.sandbox.policy import spelling  # with the sandbox: not when agex is imported

        if self.configure:
            own = spelling.configured(self.configure, self.target, self.name)
            object.__setattr__(self, "configure", own)
        if self.kind in {"class", "module", "object"}:
            for patterns in ("include", "exclude"):
                settled = spelling.settled(getattr(self, patterns), self.target, self.name)
                object.__setattr__(self, patterns, settled)

    def _require_timeout(self) -> None:
        if self.timeout is None:
            return
        if self.kind == "task":
            raise DefinitionError(
                f"timeout= is for functions, and {self.name!r} is a task: give its agent Budget(seconds=...)."
            )
        from agex.sandbox.runtime.host_time import require_timeout

        require_timeout(self.timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it by value, and a module by its name."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        module = self.target.__name__ if isinstance(self.target, ModuleType) else None
        return _again, ({**own, "target": None} if module else own, module)

    @property
    def doc(self) -> str:
        """The documentation: ``docstring``, else that of the target."""
        own = inspect.getdoc(self.target) if self.docstring is None else inspect.cleandoc(self.docstring)
        return own or ""

    @property
    def permissions(self) -> tuple[str, ...]:
        """Permissions of the audit hook that are open while it runs: ``files``, ``network``."""
        granted = (("files", self.host_fs_access), ("network", self.network_access))
        return tuple(name for name, is_granted in granted if is_granted)

    @property
    def acts(self) -> bool:
        """Whether calls of it, or of members of it, act on the world."""
        return any(mark.external for mark in marks(self))

    @property
    def asks(self) -> bool:
        """Whether a person may have to say yes to such a call."""
        return any(mark.approval is not False for mark in marks(self))

    @property
    def is_async(self) -> bool:
        """Whether calling it gives something to await."""
        return self.kind in ("function", "task") and is_async(self.target)


def _again(own: dict[str, Any], module: str | None) -> Registration:
    return Registration(**own) if module is None else Registration(**{**own, "target": import_module(module)})


def is_async(function: Any) -> bool:
    """Return whether calling *function* gives a coroutine; objects with an async ``__call__`` too."""
    if inspect.iscoroutinefunction(function):
        return True
    return not isinstance(function, FunctionType) and inspect.iscoroutinefunction(type(function).__call__)


def add(registrations: tuple[Registration, ...], new: Registration) -> tuple[Registration, ...]:
    """Return *registrations* with *new*; the same target again replaces its earlier record.

    Raises:
        DefinitionError: the name stands for something else already.
    """
    for old in registrations:
        if old.name == new.name and old.target is not new.target:
            raise DefinitionError(
                f"{new.name!r} is already registered, for another {old.kind}; register this one as name=..."
            )
    return (*(old for old in registrations if old.name != new.name), new)
