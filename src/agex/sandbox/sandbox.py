"""The sandbox by itself: a policy and limits, and programs run under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from agex.sandbox.limits import Limits
from agex.sandbox.policy import Policy
from agex.sandbox.session import Result, Session

__all__ = ["Sandbox"]


class Files(Protocol):
    """Where guest code finds files, e.g. what ``agex.connect_fs`` gives."""

    def open(self, file: Any, mode: str = "r", /, *args: Any, **kwargs: Any) -> Any:
        """Open a file as the builtin does."""


class Sandbox:
    """Runs guest code under a policy and limits.

    Args:
        policy: what guest code may reach; the standard set if not given.
        fs: the files of its ``open``; without them there is no ``open``.
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

    def session(self, namespace: Mapping[str, Any] | None = None) -> Session:
        """Open a namespace that lives over many runs."""
        session = Session(self.policy, self.limits, namespace or {})
        if self.fs is not None:
            session.bind("open", _plain(self.fs.open))
        return session

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


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    """Give a method as a function, which has no ``__self__``."""

    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in tracebacks
        return method(file, mode, *args, **kwargs)

    return open
