"""JSON Schema as Python annotations: enough to call a function, never more than the schema says.

What has no short Python name is ``Any``. The schema is a stranger's: its depth, its width and
the texts taken from it are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union

__all__ = ["Allowance", "annotation", "is_short"]

DEPTH = 4
"""Of nested containers; below that, Any."""
CHOICES = 12
"""Values of a ``Literal`` and members of a union."""
PARTS = 300
"""Of the schemas of one tool."""
TEXT = 40
"""Characters of a value that stands in a signature."""

_SCALARS: Mapping[str, Any] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "null": None,
}  # fmt: skip


class Allowance:
    """How many parts of schemas are looked at, for one tool: a part may be referred to from many places."""

    def __init__(self) -> None:
        self._left = PARTS

    def is_left(self) -> bool:
        """Return whether one more part is looked at, and count it."""
        self._left -= 1
        return self._left >= 0


def annotation(schema: Any, definitions: Mapping[str, Any], allowance: Allowance, depth: int = 0) -> Any:
    """Return the Python type of the values that *schema* describes.

    Args:
        schema: a JSON Schema, as data; anything else means Any.
        definitions: what ``#/$defs/NAME`` refers to.
        allowance: of the tool; without any, all is Any.
        depth: how deep inside another schema this one is.
    """
    if not isinstance(schema, Mapping) or depth > DEPTH or not allowance.is_left():
        return Any
    if isinstance(reference := schema.get("$ref"), str):
        return annotation(definitions.get(reference.rpartition("/")[2]), definitions, allowance, depth + 1)
    if "enum" in schema or "const" in schema:
        return _literal(schema.get("enum", [schema.get("const")]))
    for combined in ("anyOf", "oneOf"):
        if isinstance(schema.get(combined), list):
            return _union(
                [annotation(one, definitions, allowance, depth + 1) for one in schema[combined][:CHOICES]]
            )
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(
            [annotation({**schema, "type": one}, definitions, allowance, depth + 1) for one in kind[:CHOICES]]
        )
    return _of_kind(kind, schema, definitions, allowance, depth)


def _of_kind(
    kind: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any], allowance: Allowance, depth: int
) -> Any:
    if kind == "array":
        return list[annotation(schema.get("items"), definitions, allowance, depth + 1)]  # type: ignore[misc]  # made at run time
    if kind == "object":
        return dict[str, annotation(schema.get("additionalProperties"), definitions, allowance, depth + 1)]  # type: ignore[misc]
    return _SCALARS.get(kind, Any) if isinstance(kind, str) else Any


def _literal(values: Any) -> Any:
    if isinstance(values, list) and 0 < len(values) <= CHOICES and all(map(is_short, values)):
        return Literal[tuple(values)]
    return Any


def _union(members: list[Any]) -> Any:
    if not members or Any in members:
        return Any
    return Union[tuple(members)]  # noqa: UP007 - made at run time


def is_short(value: Any) -> bool:
    """Return whether a JSON value can stand in a signature as it is."""
    if isinstance(value, str):
        return len(value) <= TEXT and value.isprintable() and not set(value) & set("`\"'\\")
    return value is None or (isinstance(value, bool | int) and abs(value) < 1 << 63)
