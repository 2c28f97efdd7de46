"""Which session's guest code is running here and now."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agex.sandbox.guards import Guards

__all__ = ["CURRENT"]

CURRENT: ContextVar[Guards | None] = ContextVar("agex_guest", default=None)
"""The guards of the guest code running in this context; None in host code."""
