"""Allow-list of the host classes that a stored value may bring back."""

from __future__ import annotations

import builtins
import datetime as dt
import decimal
import fractions
import uuid
from collections.abc import Iterable

__all__ = ["Allow", "class_name"]


def class_name(cls: type) -> str:
    """Return the name of a class as the host would import it."""
    return f"{cls.__module__}.{cls.__qualname__}"


_NAMED_TYPES: tuple[type, ...] = (
    bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, slice, object,
    type(None), type(...), type(NotImplemented), dt.date, dt.datetime, dt.time,
    dt.timedelta, dt.timezone, decimal.Decimal, fractions.Fraction, uuid.UUID,
)  # fmt: skip
"""Types that a program may keep as values: ``{"age": int}``."""


class Allow:
    """Host classes whose instances are kept, and loaded again.

    Values of the builtin types, of the value types of the standard library, and of numpy, pandas,
    polars, pyarrow and plotly are always allowed: they come back through constructors of this room.

    Args:
        classes: dataclasses, enums, named tuples, pydantic models and other host classes. An
            instance is rebuilt from its fields, without its constructor, unless the class says itself
            how it is pickled (``__reduce__``, ``__setstate__``).
    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._registered = {class_name(cls): cls for cls in classes}
        self._types = {class_name(cls): cls for cls in (*_NAMED_TYPES, *_builtin_exceptions())}

    def is_registered(self, cls: type) -> bool:
        """Return whether the host registered exactly this class."""
        return self._registered.get(class_name(cls)) is cls

    def registered(self, name: str) -> type | None:
        """Find a registered class by its name."""
        return self._registered.get(name)

    def is_named(self, cls: type) -> bool:
        """Return whether the class itself can be kept as a value, by its name."""
        return self.is_registered(cls) or self._types.get(class_name(cls)) is cls

    def named(self, name: str) -> type | None:
        """Find a class that may be a value."""
        return self._registered.get(name) or self._types.get(name)


def _builtin_exceptions() -> list[type]:
    return [v for v in vars(builtins).values() if isinstance(v, type) and issubclass(v, BaseException)]
