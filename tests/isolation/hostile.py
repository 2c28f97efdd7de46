"""Raw Python for a worker's own process: what code could do that has left the sandbox."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agex.sandbox import Policy

__all__ = ["raw"]


def raw(function: Callable[..., Any]) -> Policy:
    """Give a policy under which ``Raw.go()`` runs a function in the worker, past guards and second wall."""

    def go(*args: Any) -> Any:
        from agex.sandbox.context import CURRENT

        token = CURRENT.set(None)
        try:
            return function(*args)
        finally:
            CURRENT.reset(token)

    policy = Policy.default()
    policy.cls(type("Raw", (), {"__module__": "__main__", "go": staticmethod(go)}), name="Raw")
    return policy
