"""The level ``none``: guest code in this process, behind the guards of the sandbox alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agex.isolation.executor import Level, Wall
from agex.sandbox import Limits, Policy, Session

if TYPE_CHECKING:
    from agex.sandbox.runtime.workspace_files import Files

__all__ = ["InProcessExecutor"]


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
        """Do nothing: nothing of its own runs."""
