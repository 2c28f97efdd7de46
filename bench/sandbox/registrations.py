"""Sixty registrations, as a host with much to offer would make them.

The names are everyday words, and some of what the include lists leave out (``run``,
``value``, ``data``) is said by the workloads as well: grants must cost nothing to programs
that do not use them, and little to those that only happen to use the same words.
"""

from __future__ import annotations

import types
from typing import Any

from agex.sandbox import Policy

__all__ = ["register"]

_PUBLIC = ("number", "total", "created", "title", "describe", "items", "owner")
_INTERNAL = ("run", "value", "data", "save", "delete", "reload", "connect", "commit", "refresh", "lock")


def _function(name: str) -> Any:
    def function(key: str, limit: int = 10) -> list[str]:
        return [key] * limit

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Look {name} up."
    return function


def _method(name: str) -> Any:
    def method(self: Any, amount: int = 1) -> Any:
        self._session = amount
        return self._cache

    method.__name__ = name
    return method


def _class(name: str) -> type:
    members: dict[str, Any] = {member: _method(member) for member in (*_PUBLIC, *_INTERNAL)}
    return type(name, (), {**members, "_cache": None, "__doc__": f"One {name.lower()}."})


def _module(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    for member in ("load", "find", "convert"):
        setattr(module, member, _function(member))
    return module


def register(policy: Policy) -> None:
    """Make thirty functions, twenty classes with include lists and ten modules reachable."""
    for i in range(30):
        policy.fn(_function(f"lookup_{i}"))
    for i in range(20):
        policy.cls(_class(f"Record{i}"), include=_PUBLIC)
    for i in range(10):
        policy.module(_module(f"company_tools_{i}"))
