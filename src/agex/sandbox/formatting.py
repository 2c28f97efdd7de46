"""String formatting that cannot walk attributes it may not.

``"{0.__class__}".format(x)`` reads attributes by names inside a string, where no compiler
sees them. A format string without such fields goes to the real method; one with them is
formatted here, each step through the guarded ``getattr``. PEP 3101 is the source.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["SafeFormatter", "is_plain_format", "safe_format", "safe_format_map"]

GetAttr = Callable[[Any, str], Any]


def is_plain_format(text: object) -> bool:
    """Tell whether a format string names no attribute and no index in any field."""
    if type(text) is not str:
        return False
    if "." not in text and "[" not in text:
        return True
    try:
        return all(_is_plain_field(field, spec) for _, field, spec, _ in string.Formatter().parse(text))
    except ValueError:
        return True  # the real method raises the real error


def _is_plain_field(field: str | None, spec: str | None) -> bool:
    if field is not None and ("." in field or "[" in field):
        return False
    return not spec or "{" not in spec or is_plain_format(spec)


class SafeFormatter(string.Formatter):
    """A ``string.Formatter`` whose fields are read through a guarded ``getattr``."""

    def __init__(self, getattr_: GetAttr) -> None:
        self._getattr = getattr_

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Follow the attributes and indices of a field name."""
        first, rest = _split_field(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = self._getattr(value, str(key)) if is_attribute else value[key]
        return value, first


def _split_field(field_name: str) -> tuple[int | str, Any]:
    import _string  # type: ignore[import-not-found]  # the parser behind str.format itself

    first, rest = _string.formatter_field_name_split(field_name)
    return first, rest


def safe_format(getattr_: GetAttr, text: str, /, *args: Any, **kwargs: Any) -> str:
    """Do what ``text.format(*args, **kwargs)`` does."""
    text = _exact(text)
    if is_plain_format(text):
        return text.format(*args, **kwargs)
    return SafeFormatter(getattr_).vformat(text, args, kwargs)


def safe_format_map(getattr_: GetAttr, text: str, mapping: Mapping[str, Any], /) -> str:
    """Do what ``text.format_map(mapping)`` does."""
    text = _exact(text)
    if is_plain_format(text):
        return text.format_map(mapping)
    return SafeFormatter(getattr_).vformat(text, (), mapping)


def _exact(text: str) -> str:
    """Give the characters of a str, without asking a subclass for them."""
    return text if type(text) is str else str.__str__(text)
