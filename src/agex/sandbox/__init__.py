"""Guarded Python: ordinary code, rewritten, compiled by CPython and run under a policy.

This room takes source text and a policy and gives back a result. It knows nothing of
agents, models or files. It never interprets, never wraps values, and never lets what a
guest did reach the host as an exception.

In process it is a guard rail for cooperative code; what only a worker process can stop is
listed in docs/security.md.

Names are imported when they are first used: who imports this room and runs nothing loads none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.policy.policy import MemberSpec, Policy
    from agex.sandbox.runtime.limits import Limits
    from agex.sandbox.runtime.result import Enforcement, Result
    from agex.sandbox.sandbox import Sandbox
    from agex.sandbox.session import Session
    from agex.sandbox.stored_code import KeptCode

__all__ = ["Enforcement", "KeptCode", "Limits", "MemberSpec", "Policy", "Result", "Sandbox", "Session"]

_HOMES = {
    "Enforcement": "runtime.result",
    "KeptCode": "stored_code",
    "Limits": "runtime.limits",
    "MemberSpec": "policy.policy",
    "Policy": "policy.policy",
    "Result": "runtime.result",
    "Sandbox": "sandbox",
    "Session": "session",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'agex.sandbox' has no attribute {name!r}")
    home = importlib.import_module(f"agex.sandbox.{_HOMES[name]}")
    value = globals()[name] = getattr(home, name)
    return value


def __dir__() -> list[str]:
    return __all__
