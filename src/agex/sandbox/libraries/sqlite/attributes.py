"""Assignments to connections of the host: no factory that passes its later rows through guest code."""

from __future__ import annotations

import sys
from typing import Any

from agex.errors import SandboxTypeError

__all__ = ["stored_on"]


def stored_on(receiver: Any) -> Any:
    """Return the object on which a factory of *receiver* is set: a checking one for a host's connection."""
    if not issubclass(type(receiver), sys.modules["sqlite3"].Connection):
        return receiver
    from agex.sandbox.libraries.sqlite import connections  # imports sqlite3

    return receiver if issubclass(type(receiver), connections.Connection) else _Setting(receiver)


class _Setting:
    """Accepts the factories that come with Python only."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        object.__setattr__(self, "_connection", connection)

    def __setattr__(self, name: str, value: Any) -> None:
        allowed = (None, str, bytes, bytearray, sys.modules["sqlite3"].Row)
        connection: Any = object.__getattribute__(self, "_connection")
        if not any(value is each for each in (*allowed, getattr(connection, name))):
            raise SandboxTypeError(
                f"the {name} of a connection that is not your own must be one of Python's, sqlite3.Row for "
                "example; set it on a cursor, or convert the rows"
            )
        setattr(connection, name, value)
