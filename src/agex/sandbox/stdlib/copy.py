"""``copy`` for guest code, with a memo that does not reveal the inside of host objects.

``copy.deepcopy(x, memo)`` records every object that it meets in *memo*, namespaces included, and passes the
memo to each ``__deepcopy__``. Here the memo is an object that serves the copying itself. Guest code sees in
it only what guest code put there.
"""

from __future__ import annotations

import copy as real
import dataclasses
import sys
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox.classes.deepcopy_memo import Memo
from agex.sandbox.runtime.context import asking
from agex.sandbox.runtime.scopes import Names
from agex.sandbox.stdlib import dataclasses as dataclass

__all__ = ["COPY"]


def copy(x: Any) -> Any:
    """Do what ``copy.copy`` does."""
    return x.copy() if type(x) is Names else real.copy(x)


def deepcopy(x: Any, memo: Any = None) -> Any:
    """Do what ``copy.deepcopy`` does, recording nothing of host objects in *memo*."""
    if type(x) is Names:
        x = x.copy()
    if type(memo) is not Memo:
        if memo is not None and type(memo) is not dict:
            raise SandboxTypeError(f"a memo of deepcopy() must be a dict, got {type(memo).__name__}")
        memo = Memo({}, memo)
    passed: Any = memo  # it has all methods that deepcopy calls
    return real.deepcopy(x, passed)


def replace(obj: Any, /, **changes: Any) -> Any:
    """Do what ``copy.replace`` does."""
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return dataclass.replace(obj, **changes)
    guards = asking()
    if guards is None or guards.shown_class(type(obj)) is not type(obj):
        raise SandboxTypeError(f"{type(obj).__name__} cannot be constructed here")
    return real.replace(obj, **changes)  # type: ignore[attr-defined,unused-ignore]  # since 3.13


COPY: dict[str, Any] = {"copy": copy, "deepcopy": deepcopy}
if sys.version_info >= (3, 13):
    COPY["replace"] = replace
