"""The settings of a registration as one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, get_args

from agex.errors import DefinitionError

__all__ = ["Access", "Pattern", "Visibility"]

Visibility: TypeAlias = Literal["high", "medium", "low"]
"""How much the prompt shows: signature and docstring, the signature, nothing."""
Pattern: TypeAlias = str | Iterable[str] | Callable[[str], bool]
"""Which members: globs, or a predicate of the name."""

_FUNCTION = ("host_fs_access", "network_access", "timeout")
_MEMBERS = ("include", "exclude", "configure", "host_fs_access", "network_access")
_CLASS = ("constructable", *_MEMBERS, "stays")
_MODULE = (*_MEMBERS, "recursive")


@dataclass(frozen=True, kw_only=True)
class Access:
    """How guest code may use a registered thing, and how much the prompt shows of it.

    Raises:
        DefinitionError: there is no such visibility.
    """

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
    """Seconds that guest code waits for a function; None for as long as it takes."""
    external: bool | Literal["idempotent"] = False
    """Whether a function acts on the world: its calls are journalled, a resumed run makes none again.

    "idempotent": a call of which that is not known may be made again.
    """
    approval: Any = False
    """Whether a person has to say yes to a call: True, or a predicate of the `HostCall`."""
    stays: bool = False
    """Whether the instances of a class stay in the host: a worker uses them from there."""

    def __post_init__(self) -> None:
        for patterns in ("include", "exclude"):
            object.__setattr__(self, patterns, _reusable(getattr(self, patterns)))
        if self.visibility not in get_args(Visibility):
            raise DefinitionError(
                f"visibility={self.visibility!r} is none of: {', '.join(get_args(Visibility))}."
            )

    def settings(self) -> dict[str, Any]:
        """Return all settings by name."""
        return {each.name: getattr(self, each.name) for each in fields(Access)}

    def of_function(self) -> dict[str, Any]:
        """Return the settings that a sandbox policy takes for a function."""
        return self._some(_FUNCTION)

    def of_class(self) -> dict[str, Any]:
        """Return the settings that a sandbox policy takes for a class."""
        return self._some(_CLASS)

    def of_module(self) -> dict[str, Any]:
        """Return the settings that a sandbox policy takes for a module or a live object."""
        return self._some(_MODULE)

    def _some(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}


def _reusable(pattern: Pattern) -> Pattern:
    """Return a pattern that can be read more than once."""
    if isinstance(pattern, str) or callable(pattern) or not isinstance(pattern, Iterable):
        return pattern  # the registration refuses an object that is no pattern
    return tuple(pattern)
