"""What an agent's code may use, as records; and the sandbox policy made from them."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from importlib import import_module
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Literal, NewType, TypeAlias, TypeVar, get_args

from annotated_types import BaseMetadata

from agex.agent.faults import noting
from agex.contract import TaskSignature, annotation_names, is_record
from agex.errors import DefinitionError

if TYPE_CHECKING:
    from agex.sandbox import Policy

__all__ = [
    "Isolation",
    "Kind",
    "Pattern",
    "Registration",
    "Visibility",
    "add",
    "host_classes",
    "is_async",
    "named_by",
    "policy_for",
    "policy_with",
    "require_isolation",
]

Visibility: TypeAlias = Literal["high", "medium", "low"]
"""How much the prompt shows: signature and docstring, the signature, nothing."""
Isolation: TypeAlias = Literal["none", "process", "kernel", "container"]
"""Where an agent's code runs."""
Kind: TypeAlias = Literal["function", "task", "class", "module", "object"]
Pattern: TypeAlias = str | Iterable[str] | Callable[[str], bool]
"""Which members: globs, or a predicate of the name."""

TAKEN = frozenset(
    {"cache", "dir", "help", "inputs", "print", "task_clarify", "task_fail", "task_success", "view_image"}
)
"""Names that the agent's code already has."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """One thing that an agent's code may use. Checked when made."""

    kind: Kind
    name: str
    """What the agent's code calls it; for a module, its import name."""
    target: Any = field(repr=False)
    visibility: Visibility = "high"
    docstring: str | None = None
    """Replaces the target's own in the prompt and in ``help``."""
    constructable: bool = True
    """Whether the agent may call the class."""
    include: Pattern = "*"
    exclude: Pattern = "_*"
    configure: Mapping[str, Any] = field(default_factory=dict)
    """Settings of single members: name to ``MemberSpec``."""
    recursive: bool = True
    """Whether a module brings its submodules."""
    host_fs_access: bool = False
    network_access: bool = False
    timeout: float | None = None
    """Seconds that the agent's code waits for a function; None for as long as it takes."""
    stays: bool = False
    """Whether the instances of a class are the host's alone: code elsewhere uses them from there."""

    def __post_init__(self) -> None:
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
        for setting in ("constructable", "recursive", "host_fs_access", "network_access"):
            if not isinstance(value := getattr(self, setting), bool):
                raise DefinitionError(f"{setting}={value!r} is neither True nor False.")
        self._require_timeout()
        if self.configure:
            from agex.sandbox import misnamed  # with the sandbox: not when agex is imported

            own = misnamed.configured(self.configure, self.target, self.name)
            object.__setattr__(self, "configure", own)
        for patterns in ("include", "exclude"):
            said = getattr(self, patterns)
            if self.kind in {"class", "module", "object"}:
                from agex.sandbox import misnamed  # with the sandbox: not when agex is imported

                said = misnamed.settled(said, self.target, self.name)
            object.__setattr__(self, patterns, said)
        if self.visibility not in get_args(Visibility):
            raise DefinitionError(
                f"visibility={self.visibility!r} is none of: {', '.join(get_args(Visibility))}."
            )

    def _require_timeout(self) -> None:
        if self.timeout is None:
            return
        if self.kind == "task":
            raise DefinitionError(
                f"timeout= is for functions, and {self.name!r} is a task: give its agent Budget(seconds=...)."
            )
        from agex.sandbox.hosttime import require_timeout

        require_timeout(self.timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it by value, and a module by its name."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        module = self.target.__name__ if isinstance(self.target, ModuleType) else None
        return _again, ({**own, "target": None} if module else own, module)

    @property
    def doc(self) -> str:
        """What it is for, in its own words or the host's."""
        own = inspect.getdoc(self.target) if self.docstring is None else inspect.cleandoc(self.docstring)
        return own or ""

    @property
    def doors(self) -> tuple[str, ...]:
        """Which doors of the sandbox's second wall it opens."""
        granted = (("files", self.host_fs_access), ("network", self.network_access))
        return tuple(door for door, is_granted in granted if is_granted)

    @property
    def is_async(self) -> bool:
        """Whether calling it gives something to await."""
        return self.kind in ("function", "task") and is_async(self.target)


def _again(own: dict[str, Any], module: str | None) -> Registration:
    return Registration(**own) if module is None else Registration(**{**own, "target": import_module(module)})


def is_async(function: Any) -> bool:
    """Tell whether calling *function* gives a coroutine; objects with an async ``__call__`` too."""
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


def policy_for(registrations: Iterable[Registration], signature: TaskSignature) -> Policy:
    """Return the standard policy, plus what is registered, plus the names the signature says.

    Async functions and tasks are left out: they are bound for each call, see ``execution``.
    """
    return policy_with(registrations, named_by(signature))


def policy_with(registrations: Iterable[Registration], named: Mapping[str, tuple[Any, bool]]) -> Policy:
    """Like :func:`policy_for`, with what `named_by` gave for the signature."""
    from agex.sandbox import Policy

    policy = Policy.default()
    _grant_registered(policy, registrations)
    _grant_named(policy, named)
    return policy


def named_by(signature: TaskSignature) -> dict[str, tuple[Any, bool]]:
    """Return what a task's annotations name, and whether the agent's code may make instances of it.

    It may of the data it has to return, and of enums. Of other classes that nothing else grants it
    has the instances it was given.
    """
    returned = annotation_names(signature.checker("return").annotation)
    names = dict(returned)
    for parameter in signature.parameters:
        names |= annotation_names(signature.checker(parameter).annotation)
    return {
        name: (value, is_record(value) and (name in returned or issubclass(value, Enum | BaseMetadata)))
        for name, value in names.items()
    }


def host_classes(registrations: Iterable[Registration], signature: TaskSignature) -> set[type]:
    """Return the classes whose instances a task may leave in a state: the registered, and data it names."""
    found = {one.target for one in registrations if one.kind == "class" and not one.stays}
    for parameter in ("return", *signature.parameters):
        named = annotation_names(signature.checker(parameter).annotation).values()
        found |= {each for each in named if isinstance(each, type) and is_record(each)}
    return found


def _grant_registered(policy: Policy, registrations: Iterable[Registration]) -> None:
    for one in registrations:
        if one.kind == "class":
            policy.cls(
                one.target,
                name=one.name,
                constructable=one.constructable,
                include=one.include,
                exclude=one.exclude,
                configure=dict(one.configure),
                host_fs_access=one.host_fs_access,
                network_access=one.network_access,
                stays=one.stays,
            )
        elif one.kind in ("module", "object"):
            policy.module(
                one.target,
                name=one.name,
                include=one.include,
                exclude=one.exclude,
                configure=dict(one.configure),
                recursive=one.recursive,
                host_fs_access=one.host_fs_access,
                network_access=one.network_access,
            )
        elif one.kind == "function" and not one.is_async:
            policy.fn(
                one.target,
                name=one.name,
                host_fs_access=one.host_fs_access,
                network_access=one.network_access,
                timeout=one.timeout,
                on_error=noting(one.name),
            )


def _grant_named(policy: Policy, named: Mapping[str, tuple[Any, bool]]) -> None:
    """Grant what the annotations name, so that the agent's code can repeat them."""
    for name, (value, makes) in named.items():
        if name in TAKEN or name in policy.names:
            continue
        if isinstance(value, TypeVar | NewType) or policy.imports(name, value):
            policy.names[name] = value
        elif isinstance(value, type):
            policy.cls(value, name=name, constructable=makes)


def require_isolation(isolation: Isolation) -> None:
    """Refuse a level that there is not, or that does not hold here.

    Raises:
        DefinitionError: it is no level.
        IsolationUnavailable: it does not hold here.
    """
    levels = get_args(Isolation)
    if isolation not in levels:
        raise DefinitionError(f"isolation={isolation!r} is none of: {', '.join(levels)}.")
    if isolation != "none":
        from agex.isolation import executor_of

        executor_of(isolation)
