r"""A check of the year for ``date.ctime``: a date made of the bytes of a pickle may have the year 0.

``datetime.date(b"\0\0\1\1").ctime()`` ends the process: C code looks for the name of a day before Monday.
"""

from __future__ import annotations

import types
from typing import Any

__all__ = ["looked_at"]


def looked_at(ctime: Any) -> Any:
    """Return a checked ``ctime`` of dates, bound or not; any other attribute of that name as it is."""
    import datetime as dt  # imported here: few programs need it, and it is slow to import

    if type(ctime) is types.BuiltinMethodType and issubclass(type(ctime.__self__), dt.date):
        _look(ctime.__self__, dt.date)
    elif type(ctime) is types.MethodDescriptorType and issubclass(ctime.__objclass__, dt.date):
        return lambda *args: ctime(*[_look(each, dt.date) for each in args])
    return ctime


def _look(given: Any, date: type) -> Any:
    # A guest subclass may define a year of its own.
    if issubclass(type(given), date) and not vars(date)["year"].__get__(given):
        raise ValueError("year 0 is out of range")
    return given
