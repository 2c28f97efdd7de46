"""Raw Python for a worker's own process: what code could do that has left the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agex.isolation import Executor
from agex.sandbox import Limits, Policy

__all__ = ["attempt", "raw"]


def raw(function: Callable[..., Any], *, also: Policy | None = None) -> Policy:
    """Return a policy under which ``Raw.go()`` runs a function in the worker, past guards and second wall.

    Args:
        function: any.
        also: what else is granted; a fresh policy where nothing is.
    """

    def go(*args: Any) -> Any:
        from agex.sandbox.runtime.context import CURRENT

        token = CURRENT.set(None)
        try:
            return function(*args)
        finally:
            CURRENT.reset(token)

    policy = Policy.default() if also is None else also
    policy.cls(type("Raw", (), {"__module__": "__main__", "go": staticmethod(go)}), name="Raw")
    return policy


def attempt(
    executor: Executor, function: Callable[..., Any], *args: Any, policy: Policy | None = None, **limits: Any
) -> str | None:
    """Run a function in a worker's own process; return its result as text, or the error."""
    bounds = Limits(**{"seconds": 10.0, **limits})
    session = executor.session(policy or raw(function), bounds, {"args": list(args)})
    try:
        result = session.run("Raw.go(*args)")
        return result.echo if result.error is None else f"{type(result.error).__name__}: {result.error}"
    finally:
        session.close()
