"""Trust levels: where the code of an agent runs, and the session of each level."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

from agex.errors import DefinitionError, IsolationUnavailable

if TYPE_CHECKING:
    from agex.isolation import Executor, GuestSession, Level
    from agex.sandbox import Policy
    from agex.tinyagent.limits import ExecutionLimits
    from agex.tinyagent.readonly_directory import Directory

__all__ = ["TrustLevel", "level_of", "open_session"]


class TrustLevel(Enum):
    """How far the code is trusted, from most to least."""

    LOCAL = "local"
    """In this process, behind guards: for code that means well. Fastest."""
    ISOLATED = "isolated"
    """In a process of its own, confined by the kernel."""
    SANDBOXED = "sandboxed"
    """In a container. Slowest."""


LEVELS: dict[TrustLevel, tuple[Level, ...]] = {
    TrustLevel.LOCAL: ("none",),
    TrustLevel.ISOLATED: ("kernel", "process"),
    TrustLevel.SANDBOXED: ("container",),
}
"""The isolation that each stands for: the first that holds here, said in the result."""


def level_of(level: TrustLevel | str) -> TrustLevel:
    """Return the level that is meant.

    Raises:
        DefinitionError: there is no such level.
    """
    try:
        return TrustLevel(level)
    except ValueError:
        names = ", ".join(repr(each.value) for each in TrustLevel)
        raise DefinitionError(f"{level!r} is not a trust level; give one of {names}.") from None


def open_session(
    level: TrustLevel, policy: Policy, limits: ExecutionLimits, files: Directory | None = None
) -> GuestSession:
    """Open a session in which code of this trust level runs.

    Raises:
        IsolationUnavailable: the level does not hold here. There is no step down to a weaker one.
    """
    from agex.sandbox import Limits, Sandbox

    held = Limits(
        seconds=limits.timeout_seconds,
        memory_mb=limits.max_memory_mb,
        output_chars=limits.max_output_bytes,  # a character is at least a byte
    )
    if level is not TrustLevel.LOCAL:
        from agex.tinyagent.readonly_workspace import workspace_of

        workspace = None if files is None else workspace_of(files)
        return _executor(level).session(policy, held, {}, files=workspace)
    session = Sandbox(policy, limits=held).session()
    if files is not None:
        session.bind("open", _plain(files))
    return session


def _executor(level: TrustLevel) -> Executor:
    """Return the first executor of a level that holds here."""
    from agex.isolation import executor_of

    lacking = []
    for isolation in LEVELS[level]:
        try:
            return executor_of(isolation)
        except IsolationUnavailable as error:
            lacking.append(str(error))
    raise IsolationUnavailable(
        f"TrustLevel.{level.name} does not hold here: {'; '.join(lacking)}. agex does not fall back to a "
        "weaker level by itself. To run the code in this process, behind guards that are no boundary "
        "against an attacker, pass trust_level=TrustLevel.LOCAL."
    )


def _plain(files: Directory) -> Callable[..., Any]:
    """Return ``open`` as a function, which has no ``__self__``."""

    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in tracebacks
        return files.open(file, mode, *args, **kwargs)

    return open
