"""Guarded Python: ordinary code, rewritten, compiled by CPython and run under a policy.

This room takes source text and a policy and gives back a result. It knows nothing of
agents, models or files. It never interprets, never wraps values, and never lets what a
guest did reach the host as an exception.

In process it is a guard rail for cooperative code; what only a worker process can stop is
listed in docs/security.md.
"""

from agex.sandbox.kept import KeptCode
from agex.sandbox.limits import Limits
from agex.sandbox.policy import MemberSpec, Policy
from agex.sandbox.sandbox import Sandbox
from agex.sandbox.session import Enforcement, Result, Session

__all__ = ["Enforcement", "KeptCode", "Limits", "MemberSpec", "Policy", "Result", "Sandbox", "Session"]
