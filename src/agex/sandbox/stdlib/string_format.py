"""String formatting that reads attributes through the guarded ``getattr``.

``"{0.__class__}".format(x)`` reads attributes by names inside a string, where no transformer sees them. A
format string without such fields goes to the real method. Any other is formatted here, as PEP 3101 defines
it.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agex.errors import SandboxAttributeError
from agex.sandbox.classes import stand_ins
from agex.sandbox.language.format_fields import is_plain_format
from agex.sandbox.runtime.context import asking

__all__ = [
    "SafeFormatter",
    "is_plain_format",
    "read_public",
    "reads_private",
    "safe_format",
    "safe_format_map",
]

GetAttr = Callable[[Any, str], Any]


def reads_private(text: str) -> bool:
    """Return whether a field of a format string names an attribute that begins with an underscore."""
    text = _exact(text)
    if is_plain_format(text):
        return False
    for _, field, spec, _ in string.Formatter().parse(text):
        rest = () if field is None else _split_field(field)[1]
        if any(is_attribute and str(key).startswith("_") for is_attribute, key in rest):
            return True
        if spec and reads_private(spec):
            return True
    return False


def get_field(self: Any, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Follow the attributes and indices of a field name."""
    first, rest = _split_field(field_name)
    value = self.get_value(first, args, kwargs)
    for is_attribute, key in rest:
        value = _read(value, str(key)) if is_attribute else value[key]
    return value, first


def _read(subject: Any, name: str) -> Any:
    guards = asking()
    if guards is None:
        raise SandboxAttributeError("attributes by name can be read while the sandbox runs, not after")
    return guards.getattr(subject, name)


def read_public(subject: Any, name: str) -> Any:
    """Read an attribute for a format string of which nobody knows who wrote it; no private ones."""
    if name.startswith("_"):
        raise SandboxAttributeError(
            f"a format string reads no attribute {name!r} here; format the value in a function of your own"
        )
    return getattr(subject, name)


# Made of the functions of the real class, not derived from it: its bases would lead to the real class.
SafeFormatter = stand_ins.stands_for(
    string.Formatter,
    type(
        "Formatter",
        (),
        {
            "__doc__": string.Formatter.__doc__,
            "__module__": "string",
            **{name: value for name, value in vars(string.Formatter).items() if not name.startswith("__")},
            "get_field": get_field,
        },
    ),
)
"""A ``string.Formatter`` whose fields are read through a guarded ``getattr``."""


def _split_field(field_name: str) -> tuple[int | str, Any]:
    import _string  # type: ignore[import-not-found]  # the parser of str.format itself

    first, rest = _string.formatter_field_name_split(field_name)
    return first, rest


def safe_format(getattr_: GetAttr, text: str, /, *args: Any, **kwargs: Any) -> str:
    """Do what ``text.format(*args, **kwargs)`` does."""
    text = _exact(text)
    if is_plain_format(text):
        return text.format(*args, **kwargs)
    return _Method(getattr_, args, kwargs).format(text)


def safe_format_map(getattr_: GetAttr, text: str, mapping: Mapping[str, Any], /) -> str:
    """Do what ``text.format_map(mapping)`` does."""
    text = _exact(text)
    if is_plain_format(text):
        return text.format_map(mapping)
    return _Method(getattr_, (), mapping).format(text)


class _Method:
    """``str.format``, whose numbering of fields and messages differ from those of ``string.Formatter``."""

    def __init__(self, getattr_: GetAttr, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._getattr = getattr_
        self._args = args
        self._kwargs = kwargs
        self._next: int | None = 0  # the number of the next field without one; None once fields have numbers
        self._counted = False

    def format(self, text: str, depth: int = 2) -> str:
        if depth == 0:
            raise ValueError("Max string recursion exceeded")
        parts: list[str] = []
        for literal, field, spec, conversion in string.Formatter().parse(text):
            parts.append(literal)
            if field is not None:
                value = _converted(self._value(field), conversion)
                parts.append(
                    format(value, self.format(spec, depth - 1) if spec and "{" in spec else spec or "")
                )
        return "".join(parts)

    def _value(self, field: str) -> Any:
        first, rest = _split_field(field)
        value = self._first(first)
        for is_attribute, key in rest:
            value = self._getattr(value, str(key)) if is_attribute else value[key]
        return value

    def _first(self, key: int | str) -> Any:
        if key == "":
            if self._next is None:
                raise ValueError("cannot switch from manual field specification to automatic field numbering")
            key, self._counted = self._next, True
            self._next += 1
        elif isinstance(key, int):
            if self._counted:
                raise ValueError("cannot switch from automatic field numbering to manual field specification")
            self._next = None
        if isinstance(key, str):
            return self._kwargs[key]
        if key >= len(self._args):
            raise IndexError(f"Replacement index {key} out of range for positional args tuple")
        return self._args[key]


def _converted(value: Any, conversion: str | None) -> Any:
    if conversion is None:
        return value
    if conversion not in {"s", "r", "a"}:
        f"{{!{conversion}}}".format(value)  # raises the interpreter's own error
    converters: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
    return converters[conversion](value)


def _exact(text: str) -> str:
    """Return the characters of a str without calling a subclass."""
    return text if type(text) is str else str.__str__(text)
