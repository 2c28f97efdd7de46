"""``isinstance`` with a protocol, which reads what that names of the object until Python 3.12.

An object of a guest's may have a property there: the host only asks of what class it is, and the guest's code
runs. So that is behind limits, as what the host asks for by ``repr`` is.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from agex.sandbox.patches.replace import replace
from agex.sandbox.runtime import provenance as origins

__all__ = ["install"]


def install() -> None:
    """Put the check in place, once a process."""
    if sys.version_info < (3, 12):
        replace(vars(typing)["_ProtocolMeta"], "__instancecheck__", _behind_limits)


def _behind_limits(real: Callable[..., bool]) -> Callable[..., bool]:
    def __instancecheck__(cls: Any, instance: Any) -> bool:  # noqa: N807 - the name it has in its class
        guards = origins.guards_of(type(instance))
        if guards is not None:
            return bool(guards.hooks.asking(real, cls, instance))
        if getattr(cls, "_is_runtime_protocol", True) or not _asks_for_itself():
            return real(cls, instance)
        return bool(_as_library(real, cls, instance))

    return __instancecheck__


def _asks_for_itself() -> bool:
    """Tell whether it is a library of Python's that asks, which may ask of any protocol."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - it is told by its module
    return frame.f_globals.get("__name__") in {"abc", "functools"}


def _call(real: Callable[..., bool], cls: Any, instance: Any) -> bool:
    return real(cls, instance)


_as_library: Any = types.FunctionType(_call.__code__, {"__name__": "functools"})
