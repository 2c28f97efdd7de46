"""Values written out as Python source that makes them again: for the tests of frozen code."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import sys
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from pydantic import BaseModel

__all__ = ["Imports", "NotSource", "importable", "source_of", "source_or_none"]

SOURCE_CHARS = 2_000
"""Of one value: a test that is longer is read by nobody."""
_SCALARS = (type(None), bool, int, str, bytes)
_MAKERS = (Decimal, Fraction, dt.datetime, dt.date, dt.time, dt.timedelta)
"""Classes whose `repr` is the call that makes an instance."""


class NotSource(ValueError):
    """A value cannot be written out."""


class Imports:
    """The imports that some source needs."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.names: dict[str, tuple[str, str]] = {}
        """By the name in the source: the module and the name there."""

    def module(self, name: str) -> None:
        """Import a module."""
        self.modules.add(name)

    def name(self, module: str, name: str, alias: str | None = None) -> str:
        """Import a name of a module; return how it is said.

        Raises:
            NotSource: the name is taken by another.
        """
        said = alias or name
        if self.names.setdefault(said, (module, name)) != (module, name):
            raise NotSource(f"{said!r} is both {'.'.join(self.names[said])} and {module}.{name}")
        return said

    def lines(self) -> list[str]:
        """Return the statements, sorted as linters want them."""
        plain = [f"import {name}" for name in sorted(self.modules)]
        froms: dict[str, list[str]] = {}
        for said, (module, name) in self.names.items():
            froms.setdefault(module, []).append(name if said == name else f"{name} as {said}")
        return [
            *plain,
            *(f"from {module} import {', '.join(sorted(froms[module]))}" for module in sorted(froms)),
        ]


def source_or_none(value: Any) -> str | None:
    """Return the source of a value, or None."""
    try:
        return source_of(value, Imports())
    except NotSource:
        return None


def source_of(value: Any, imports: Imports) -> str:
    """Return an expression that makes an equal value.

    Raises:
        NotSource: there is none, or it would be too long.
    """
    try:
        text = _written(value, imports)
    except RecursionError:
        raise NotSource("it is nested too deep") from None
    if len(text) > SOURCE_CHARS:
        raise NotSource(f"its source has more than {SOURCE_CHARS:,} characters")
    return text


def importable(thing: Any) -> tuple[str, str] | None:
    """Return the module and the name under which a program can import something; None for nowhere."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if type(module) is str and type(name) is str and name.isidentifier():
        there = sys.modules.get(module)
        if there is not None and vars(there).get(name) is thing:
            return module, name
    return None


def _written(value: Any, imports: Imports) -> str:
    kind: type = type(value)  # what an instance says of its class does not count
    if kind in _SCALARS:
        return repr(value)
    if kind is float or kind is complex:
        return _number(value, imports)
    if kind in (list, tuple, set, frozenset):
        return _items(kind, value, imports)
    if kind is dict:
        return f"{{{', '.join(f'{_written(k, imports)}: {_written(v, imports)}' for k, v in value.items())}}}"
    if kind in _MAKERS:
        if getattr(value, "tzinfo", None) not in (None, dt.UTC):
            raise NotSource(f"a {kind.__name__} of a time zone has no source")
        imports.module(kind.__module__) if kind.__module__ == "datetime" else imports.name(
            kind.__module__, kind.__name__
        )
        return repr(value)
    return _of_class(kind, value, imports)


def _number(value: complex, imports: Imports) -> str:
    if type(value) is complex or math.isfinite(value):  # type: ignore[arg-type]  # a float, by then
        text = repr(value)
        if "nan" in text or "inf" in text:
            raise NotSource(f"{text} has no source")
        return text
    if math.isnan(value):  # type: ignore[arg-type]
        raise NotSource("nan is not equal to itself")
    imports.module("math")
    return "math.inf" if value > 0 else "-math.inf"  # type: ignore[operator]


def _items(kind: type, value: Any, imports: Imports) -> str:
    if kind in (set, frozenset):
        items = sorted(_written(each, imports) for each in value)
        text = f"{{{', '.join(items)}}}" if items else ""
        return text if kind is set and items else f"{kind.__name__}({text})"
    inner = ", ".join(_written(each, imports) for each in value)
    if kind is list:
        return f"[{inner}]"
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def _of_class(kind: type, value: Any, imports: Imports) -> str:
    """Return the source of an instance of a class that a program can import."""
    place = importable(kind)
    if place is None:
        raise NotSource(f"{kind.__name__} cannot be imported from a module")
    if issubclass(kind, Enum):
        return f"{imports.name(*place)}.{value.name}"
    fields = _fields(kind, value)
    if fields is None:
        raise NotSource(f"a {kind.__name__} has no source")
    said = imports.name(*place)
    return f"{said}({', '.join(f'{name}={_written(each, imports)}' for name, each in fields.items())})"


def _fields(kind: type, value: Any) -> dict[str, Any] | None:
    """Return the arguments that make an instance; None where it is not known."""
    if dataclasses.is_dataclass(kind):
        if any(not one.init for one in dataclasses.fields(kind)):
            return None
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(kind)}
    if issubclass(kind, BaseModel):
        if any(one.alias or one.validation_alias for one in kind.model_fields.values()):
            return None
        return {name: getattr(value, name) for name in kind.model_fields}
    if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        return dict(zip(kind._fields, value, strict=True))  # type: ignore[attr-defined]  # of a NamedTuple
    return None
