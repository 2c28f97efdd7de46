"""Modules of the interpreter's own, to which an object leads by the names that modules have.

``path.parser`` is ``posixpath``, which has the real ``os``; a class may keep ``re``, which leads to ``sys``.
A strict policy asks for every attribute; any other for those names.
"""

from __future__ import annotations

import builtins as host
import types
from typing import TYPE_CHECKING, Any

from agex.sandbox.guards.door import Door
from agex.sandbox.policy.library_members import member_door

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["module_door"]


def module_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Read an attribute, and refuse it where it is a module that was not registered."""
    given = member_door(guards, receiver, name)
    if given is not receiver:
        return given
    value = host.getattr(receiver, name)
    if issubclass(type(value), types.ModuleType):
        guards.check_module(value)
    return Door(value)
