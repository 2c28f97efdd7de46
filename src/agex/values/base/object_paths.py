"""Paths to objects in variables, as expressions, for messages about lost objects."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agex.values.base.type_checks import is_a, is_exactly

__all__ = ["Paths"]

_MOST = 100_000  # objects looked at: the text of an error is not worth more
_NAME = re.compile(r"[^\W\d]\w*")


class Paths:
    """Paths to the objects that variables reach, the shortest to each."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._paths: dict[int, tuple[int | None, str]] = {}
        self._rest: list[Any] = []
        self._only = next(iter(values)) if len(values) == 1 else ""
        for name, value in values.items():
            self._paths.setdefault(id(value), (None, name))
            self._rest.append(value)

    @staticmethod
    def variable(path: str) -> str | None:
        """Return the variable that a path begins with."""
        found = _NAME.match(path)
        return found.group() if found else None

    def of(self, value: Any) -> str:
        """Return the path to an object; the name of the only variable, or nothing, where none is found."""
        while id(value) not in self._paths and self._rest and len(self._paths) < _MOST:
            level, self._rest = self._rest, []
            for parent in level:
                self._look_into(parent)
        parts: list[str] = []
        at: int | None = id(value)
        while at is not None:
            if at not in self._paths:
                return self._only
            at, step = self._paths[at]
            parts.append(step)
        return "".join(reversed(parts))

    def _look_into(self, parent: Any) -> None:
        for step, child in _steps(parent):
            if id(child) not in self._paths and len(self._paths) < _MOST:
                self._paths[id(child)] = (id(parent), step)
                self._rest.append(child)


def _steps(parent: Any) -> Iterator[tuple[str, Any]]:
    if type(parent) is dict:
        for key, child in parent.items():
            yield f"[{_short(key)}]", child
    elif type(parent) in {list, tuple}:
        for i, child in enumerate(parent):
            yield f"[{i}]", child
    elif is_exactly(type(parent), "numpy", "ndarray") and parent.dtype.hasobject:
        yield from ((f"[{i}]", child) for i, child in enumerate(parent.ravel().tolist()))
    elif not is_a(parent, (type, str, bytes, int, float)):
        for child in gc.get_referents(parent):
            if type(child) is dict and child and all(type(key) is str for key in child):
                for key, value in child.items():
                    yield f".{key}", value
            elif not is_a(child, (type, str, bytes, int, float)):
                yield "", child


def _short(key: Any) -> str:
    text = repr(key) if type(key) in {str, int, float, bool, bytes, type(None)} else f"<{type(key).__name__}>"
    return text if len(text) <= 40 else text[:37] + "..."
