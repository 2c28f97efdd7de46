"""JSON Schema as Python annotations: enough to call a function, never more than the schema says.

An object with named fields is a TypedDict: its values go to the tool, and come from it, as plain dicts.
What has no short Python name is ``Any``. The schema is a stranger's: its depth, its width, the number of its
classes and the texts taken from it are bounded, and no text of it is ever evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, Union

from agex.mcp.typed_dicts import TypedDicts

__all__ = ["Reader", "is_short", "referred"]

DEPTH = 4
"""Of containers within each other in one annotation; below that, Any."""
CHOICES = 12
"""Values of a ``Literal`` and members of a union."""
PARTS = 300
"""Of the schemas of one tool."""
FIELDS = 40
"""Of a TypedDict; the rest is counted."""
KEY_CHARS = 64
TEXT = 40
"""Characters of a value that stands in a signature."""
DOCUMENT_CHARS = 50_000
"""Of a schema with objects. They are known again by their text, so a longer one has none that are named."""
COMPARED_CHARS = 200_000
"""Of the texts by which the objects of one schema are known again; after that, none is named."""
POINTER_STEPS = 16
"""Of a reference into the document; a longer one leads to Any."""

_SCALARS: Mapping[str, Any] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "null": None,
}  # fmt: skip


class Reader:
    """Reads the schemas of one tool. Each part counts, for it may be referred to from many places.

    Args:
        document: what ``#`` in a reference means.
        classes: of the server: a definition that tools share is one class.
        parts: how many are left to look at.
    """

    def __init__(self, document: Mapping[str, Any], classes: TypedDicts, parts: int = PARTS) -> None:
        self._document = document
        self._classes = classes
        self.parts = parts
        self._made: dict[int, type] = {}
        """The class of each object of the document that was seen, by its identity: the document keeps it."""
        self._waiting: list[tuple[type, Mapping[str, Any]]] = []
        self._definitions = _definitions_text(document)
        self._chars = COMPARED_CHARS if self._definitions is not None else 0

    def annotation(self, schema: Any, name: str) -> Any:
        """Return the Python type of the values that *schema* describes.

        Args:
            schema: a part of the document; what is no schema means Any.
            name: of the class that an object without a title becomes.
        """
        read = self._of(schema, name, 0)
        while self._waiting:  # not by recursion: objects within objects may go on for long
            cls, described = self._waiting.pop(0)
            self._fill(cls, described)
        return read

    def _of(self, schema: Any, name: str, depth: int) -> Any:
        self.parts -= 1
        if not isinstance(schema, Mapping) or depth > DEPTH or self.parts < 0:
            return Any
        if isinstance(reference := schema.get("$ref"), str):
            return self._of(referred(self._document, reference), _last_part(reference), depth + 1)
        if "enum" in schema or "const" in schema:
            return _literal(schema.get("enum", [schema.get("const")]))
        for combined in ("anyOf", "oneOf"):
            if isinstance(schema.get(combined), list):
                return _union([self._of(one, name, depth + 1) for one in schema[combined][:CHOICES]])
        if isinstance(whole := schema.get("allOf"), list) and len(whole) == 1:
            return self._of(whole[0], name, depth + 1)
        kind = schema.get("type", "object" if isinstance(schema.get("properties"), Mapping) else None)
        if isinstance(kind, list):
            return _union([self._of_kind(one, schema, name, depth + 1) for one in kind[:CHOICES]])
        return self._of_kind(kind, schema, name, depth)

    def _of_kind(self, kind: Any, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        if kind == "array":
            return list[self._of(schema.get("items"), name, depth + 1)]  # type: ignore[misc]  # made at run time
        if kind != "object":
            return _SCALARS.get(kind, Any) if isinstance(kind, str) else Any
        if schema.get("properties") and isinstance(schema["properties"], Mapping):
            return self._class(schema, name) or dict[str, Any]
        return dict[str, self._of(schema.get("additionalProperties"), name, depth + 1)]  # type: ignore[misc]

    def _class(self, schema: Mapping[str, Any], name: str) -> type | None:
        """Return the TypedDict of an object; None where there are too many already."""
        if id(schema) in self._made:
            return self._made[id(schema)]
        if self._chars <= 0 or self._classes.is_full:
            return None
        title = schema.get("title")
        called = title if isinstance(title, str) and title.strip() else name
        text = json.dumps(schema)
        self._chars -= len(text)
        cls, is_new = self._classes.get(called, f"{text} {self._definitions}" if '"$ref"' in text else text)
        self._made[id(schema)] = cls
        if is_new:
            self._waiting.append((cls, schema))
        return cls

    def _fill(self, cls: type, schema: Mapping[str, Any]) -> None:
        """Fill a class: required fields come first, those whose names no line can show are counted."""
        properties, required = schema["properties"], schema.get("required")
        needed = {one for one in required if isinstance(one, str)} if isinstance(required, list) else set()
        shown = [key for key in properties if is_short(key, KEY_CHARS) and key]
        shown = sorted(shown, key=lambda key: key not in needed)[:FIELDS]
        fields = {key: self._of(properties[key], f"{cls.__name__}_{key}", 0) for key in shown}
        described = schema.get("description")
        self._classes.fill(
            cls,
            fields,
            required=needed,
            hidden=len(properties) - len(shown),
            doc=described if isinstance(described, str) else "",
        )


def referred(document: Mapping[str, Any], reference: str) -> Any:
    """Return what a reference into a document leads to; None for one that leads out of it."""
    steps = reference[1:].split("/")[1:]
    if not reference.startswith("#") or len(steps) > POINTER_STEPS:
        return None
    found: Any = document
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def _definitions_text(document: Mapping[str, Any]) -> str | None:
    """Return the definitions of a document as text; None if it is too long or too deep."""
    try:
        text = json.dumps(document)
    except RecursionError:
        return None
    if len(text) > DOCUMENT_CHARS:
        return None
    return json.dumps([document.get("$defs"), document.get("definitions")])


def _last_part(reference: str) -> str:
    return reference.rpartition("/")[2]


def _literal(values: Any) -> Any:
    if isinstance(values, list) and 0 < len(values) <= CHOICES and all(map(is_short, values)):
        return Literal[tuple(values)]
    return Any


def _union(members: list[Any]) -> Any:
    if not members or Any in members:
        return Any
    return Union[tuple(members)]  # noqa: UP007 - made at run time


def is_short(value: Any, chars: int = TEXT) -> bool:
    """Return whether a JSON value can stand in a signature as it is."""
    if isinstance(value, str):
        return len(value) <= chars and value.isprintable() and not set(value) & set("`\"'\\")
    return value is None or (isinstance(value, bool | int) and abs(value) < 1 << 63)
