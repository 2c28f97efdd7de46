"""``warnings.warn`` that notes what was said with the guest, not in a module of the host."""

from __future__ import annotations

import operator
import sys
import warnings
import weakref
from types import FrameType
from typing import Any

from agex.sandbox.context import asking

__all__ = ["warn"]

_SAID: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
"""What each session has warned of: the same is shown once a place."""


def warn(
    message: Any,
    category: Any = None,
    stacklevel: Any = 1,
    source: Any = None,
    *,
    skip_file_prefixes: Any = (),
) -> None:
    """Do what ``warnings.warn`` does, about a line of the guest's."""
    if isinstance(message, Warning):
        category = type(message)
    elif category is None:
        category = UserWarning
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise TypeError(f"category must be a Warning subclass, not '{type(category).__name__}'")
    guards = asking()
    frame = _frame(guards, operator.index(stacklevel))
    if guards is None or frame is None:
        return
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        guards.classes.module_name,
        _SAID.setdefault(guards, {}),
        source=source,
    )


def _frame(guards: Any, level: int) -> FrameType | None:
    """Find the guest's frame so many calls up, or its outermost one."""
    found = None
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - as the real one does
    while frame is not None and guards is not None:
        if frame.f_builtins is guards.builtins:
            found = frame
            level -= 1
            if level < 1:
                break
        frame = frame.f_back
    return found
