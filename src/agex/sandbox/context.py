"""Which session's guest code is running here and now."""

from __future__ import annotations

import sys
import types
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agex.sandbox.guards import Guards

__all__ = ["CURRENT", "asking"]

CURRENT: ContextVar[Guards | None] = ContextVar("agex_guest", default=None)
"""The guards of the guest code running in this context; None in host code."""

_BETWEEN = sys.stdlib_module_names | {"agex"}


def asking() -> Guards | None:
    """Give the guards of the guest code that asks; None where it is the host.

    A function of the guest's that the host calls after its run is in no run: there it is told by its frame,
    if nothing is between but this library and Python's own.
    """
    guards = CURRENT.get()
    frame: types.FrameType | None = None if guards else sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        check: Any = frame.f_builtins.get("check!")
        if check is not None:
            found: Guards = check.__self__
            return found
        name = frame.f_globals.get("__name__")
        if type(name) is not str or name.partition(".")[0] not in _BETWEEN:
            return None
        frame = frame.f_back
    return guards
