"""The sandbox by itself: a policy and limits, and programs run under them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agex.sandbox.limits import Limits
from agex.sandbox.policy import Policy
from agex.sandbox.session import Result, Session

__all__ = ["Sandbox"]


class Sandbox:
    """Runs guest code under a policy and limits.

    Example::

        sandbox = Sandbox(Policy.default(), limits=Limits(seconds=5.0))
        result = sandbox.exec("import math; math.sqrt(x)", namespace={"x": 9})
        result.value  # 3.0
    """

    def __init__(self, policy: Policy | None = None, *, limits: Limits | None = None) -> None:
        self.policy = Policy.default() if policy is None else policy
        self.limits = Limits() if limits is None else limits

    def session(self, namespace: Mapping[str, Any] | None = None) -> Session:
        """Open a namespace that lives over many runs."""
        return Session(self.policy, self.limits, namespace or {})

    def exec(self, source: str, namespace: Mapping[str, Any] | None = None) -> Result:
        """Run a program in a fresh namespace. Nothing the guest did is raised.

        Args:
            source: the program's text.
            namespace: its variables, by reference.
        """
        return self.session(namespace).run(source)

    async def aexec(self, source: str, namespace: Mapping[str, Any] | None = None) -> Result:
        """Like `exec`, with ``await`` allowed at the top level, in the caller's event loop."""
        return await self.session(namespace).arun(source)
