r"""Dates of a year that no calendar has: made of the bytes that a pickle holds, they are not looked at.

``datetime.date(b"\0\0\1\1").ctime()`` ends the process: C code looks for the name of a day before Monday.
"""

from __future__ import annotations

import datetime as dt
import types
from typing import Any

__all__ = ["looked_at"]


def looked_at(ctime: Any) -> Any:
    """Give ``ctime`` of dates for a guest, bound or not; anything else of that name as it is."""
    if type(ctime) is types.BuiltinMethodType and issubclass(type(ctime.__self__), dt.date):
        _look(ctime.__self__)
    elif type(ctime) is types.MethodDescriptorType and issubclass(ctime.__objclass__, dt.date):
        return lambda *args: ctime(*map(_look, args))
    return ctime


def _look(given: Any) -> Any:
    if issubclass(type(given), dt.date) and not _YEAR(given):
        raise ValueError("year 0 is out of range")
    return given


_YEAR: Any = vars(dt.date)["year"].__get__  # which a class of a guest's may have anew
