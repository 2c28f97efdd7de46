"""The error for variables whose stored bytes are intact but cannot be decoded."""

from __future__ import annotations

from collections.abc import Iterable

from agex import values
from agex.errors import UnpicklableVariableError

__all__ = ["Unreadable"]


class Unreadable(UnpicklableVariableError):
    """A variable is stored, but its value cannot be decoded.

    Guest code may raise when it is run again, a class may not be registered here, a library may
    be missing. What is stored stays as it is until somebody gives the name another value, or deletes it.

    Attributes:
        name: the variable.
        names: those that are stored as one with it, itself among them.
        reason: what was raised.
    """

    def __init__(self, name: str, names: Iterable[str], error: Exception) -> None:
        self.name = name
        self.names = tuple(names)
        self.reason = _reason(error)
        others = [one for one in self.names if one != name]
        together = f" It is stored together with {', '.join(others)}." if others else ""
        super().__init__(
            f"Variable {name!r} is stored, but cannot be read again: {self.reason}.{together}\n\n"
            "Solutions:\n"
            "  1. Read it where what it needs is registered and installed\n"
            f"  2. Give it up: del state[{name!r}], or give it another value"
        )

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return UnpicklableVariableError, (str(self),)

    def marker(self, name: str, hint: str = "") -> values.NotKept:
        """Return the marker that a task gets in place of one of the variables."""
        reason = f"it is stored, but cannot be read again: {self.reason}{hint}"
        return values.NotKept(name, "unreadable value", reason)


def _reason(error: Exception) -> str:
    """Return the cause that the decoder met, without its claim of damaged bytes: they are intact."""
    cause = error.__cause__
    if cause is None or isinstance(cause, ModuleNotFoundError):
        return str(error)
    return f"{type(cause).__name__}: {cause}"
