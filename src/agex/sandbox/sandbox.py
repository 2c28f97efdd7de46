"""The sandbox by itself: programs run under a policy and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agex.sandbox.policy.policy import Policy
from agex.sandbox.runtime.limits import Limits
from agex.sandbox.runtime.result import Result
from agex.sandbox.session import Session

if TYPE_CHECKING:
    from agex.sandbox.runtime.workspace_files import Files

__all__ = ["Sandbox"]


class Sandbox:
    """Runs guest code under a policy and limits.

    Args:
        policy: what guest code may reach; the standard set if not given.
        fs: the workspace: files for ``open``, for ``os``, ``pathlib`` and their kin, and for libraries;
            guest code has no files without it.
        limits: of time, memory and output.

    Example::

        sandbox = Sandbox(Policy.default(), limits=Limits(seconds=5.0))
        result = sandbox.exec("import math; math.sqrt(x)", namespace={"x": 9})
        result.value  # 3.0
    """

    def __init__(
        self, policy: Policy | None = None, *, fs: Files | None = None, limits: Limits | None = None
    ) -> None:
        self.policy = Policy.default() if policy is None else policy
        self.fs = fs
        self.limits = Limits() if limits is None else limits

    def session(self, namespace: Mapping[str, Any] | None = None, *, fs: Files | None = None) -> Session:
        """Open a namespace that lives over many runs, with the sandbox's own workspace or another."""
        files = self.fs if fs is None else fs
        return Session(self.policy, self.limits, namespace or {}, files=files)

    def exec(self, source: str, namespace: Mapping[str, Any] | None = None) -> Result:
        """Run a program in a fresh namespace. No error of guest code is raised; it is in the result.

        Args:
            source: the program's text.
            namespace: its variables, by reference.

        Raises:
            TypeError: *source* is no text.
        """
        _require_text(source)
        return self.session(namespace).run(source)

    async def aexec(self, source: str, namespace: Mapping[str, Any] | None = None) -> Result:
        """Like `exec`, with ``await`` allowed at the top level, in the caller's event loop."""
        _require_text(source)
        return await self.session(namespace).arun(source)


def _require_text(source: object) -> None:
    if not isinstance(source, str):
        raise TypeError(f"the source of a program is a str, got {type(source).__name__}")
