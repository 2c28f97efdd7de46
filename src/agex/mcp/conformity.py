"""Check whether a tool's structured content has the shape that its own schema says, at a bounded cost.

Both are a stranger's. Patterns are not tried, for they can take for ever; no more are limits of numbers
and lengths. What is checked is what an annotation would say: types, keys, choices and their combinations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agex.mcp.schema import referred

__all__ = ["require_conforming"]

STEPS = 100_000
"""Of one answer: a part of it held against a part of the schema."""
DEPTH = 100
"""Of parts within parts."""


def require_conforming(value: Any, schema: Mapping[str, Any]) -> None:
    """Refuse a value that does not have the shape that *schema* says.

    Raises:
        ValueError: it has not, or it cannot be found out.
    """
    problem = _Check(schema).problem(value, schema, "the answer", 0)
    if problem is not None:
        raise ValueError(problem)


class _Check:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._steps = STEPS

    def problem(self, value: Any, schema: Any, where: str, depth: int) -> str | None:
        """Return why a value does not fit, None if it does."""
        self._steps -= 1
        if self._steps < 0 or depth > DEPTH:
            raise ValueError("its schema, or the answer, has too many parts to be checked")
        if schema is False:
            return f"{where} must not be there"
        if not isinstance(schema, Mapping):
            return None
        return (
            self._by_reference(value, schema, where, depth)
            or _by_kind(value, schema, where)
            or self._by_parts(value, schema, where, depth)
            or self._combined(value, schema, where, depth)
        )

    def _by_reference(self, value: Any, schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return None
        found = referred(self._document, reference)
        if found is None:
            raise ValueError("its schema refers to what it does not contain")
        return self.problem(value, found, where, depth + 1)

    def _by_parts(self, value: Any, schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        if isinstance(value, dict):
            return self._of_object(value, schema, where, depth)
        items = schema.get("items")
        if isinstance(value, list) and items is not None and "prefixItems" not in schema:
            for number, each in enumerate(value):
                if problem := self.problem(each, items, f"{where}[{number}]", depth + 1):
                    return problem
        return None

    def _of_object(
        self, value: dict[str, Any], schema: Mapping[str, Any], where: str, depth: int
    ) -> str | None:
        properties, required = schema.get("properties"), schema.get("required")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        for key in required if isinstance(required, list) else ():
            if isinstance(key, str) and key not in value:
                return f"{where} has no {key!r:.80}"
        others = True if "patternProperties" in schema else schema.get("additionalProperties", True)
        for key, each in value.items():
            if problem := self.problem(each, known.get(key, others), f"{where}[{key!r:.80}]", depth + 1):
                return problem
        return None

    def _combined(self, value: Any, schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        for each in _list(schema, "allOf"):
            if problem := self.problem(value, each, where, depth + 1):
                return problem
        for name in ("anyOf", "oneOf"):
            choices = _list(schema, name)
            if choices and all(self.problem(value, each, where, depth + 1) for each in choices):
                return f"{where} is none of the {len(choices)} that it may be"
        return None


def _by_kind(value: Any, schema: Mapping[str, Any], where: str) -> str | None:
    kinds = schema.get("type")
    names = [kinds] if isinstance(kinds, str) else _list(schema, "type")
    if names and not any(_is_kind(value, name) for name in names):
        return f"{where} is no {' or '.join(str(name)[:20] for name in names[:6])}"
    choices = [schema["const"]] if "const" in schema else _list(schema, "enum")
    if choices and not any(each == value and type(each) is type(value) for each in choices):
        return f"{where} is none of the values that it may be"
    return None


def _is_kind(value: Any, name: Any) -> bool:
    if name == "number":
        return type(value) in (int, float)
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return type(value) is _KINDS.get(name) if isinstance(name, str) else False


_KINDS: Mapping[str, type] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
}  # fmt: skip


def _list(schema: Mapping[str, Any], name: str) -> list[Any]:
    found = schema.get(name)
    return found if isinstance(found, list) else []
