r"""Dates of a year that no calendar has: made of the bytes that a pickle holds, they are not looked at.

``datetime.date(b"\0\0\1\1").ctime()`` ends the process: C code looks for the name of a day before Monday.
"""

from __future__ import annotations

import types
from typing import Any

__all__ = ["looked_at"]


def looked_at(ctime: Any) -> Any:
    """Give ``ctime`` of dates for a guest, bound or not; anything else of that name as it is."""
    import datetime as dt  # here: few programs ask for it, and it is slow to import

    if type(ctime) is types.BuiltinMethodType and issubclass(type(ctime.__self__), dt.date):
        _look(ctime.__self__, dt.date)
    elif type(ctime) is types.MethodDescriptorType and issubclass(ctime.__objclass__, dt.date):
        return lambda *args: ctime(*[_look(each, dt.date) for each in args])
    return ctime


def _look(given: Any, date: type) -> Any:
    # The year of a class of a guest's may be one of its own.
    if issubclass(type(given), date) and not vars(date)["year"].__get__(given):
        raise ValueError("year 0 is out of range")
    return given
