"""Fields of format strings, and whether they walk attributes (PEP 3101)."""

from __future__ import annotations

import re
import string

__all__ = ["is_plain_format"]

_WALK = re.compile(r"\{[^{}:!]*[.\[]")
"""Finds every field, also one inside a format spec, whose name could go on to an attribute or an index."""


def is_plain_format(text: object) -> bool:
    """Return whether a format string names no attribute and no index in any field."""
    if type(text) is not str:
        return False
    if _WALK.search(text) is None:
        return True
    try:
        return all(_is_plain_field(field, spec) for _, field, spec, _ in string.Formatter().parse(text))
    except ValueError:
        return True  # the real method raises the real error


def _is_plain_field(field: str | None, spec: str | None) -> bool:
    if field is not None and ("." in field or "[" in field):
        return False
    return not spec or "{" not in spec or is_plain_format(spec)
