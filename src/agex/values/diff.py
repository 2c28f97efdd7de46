"""Difference of two values in a few words, for people who read a history.

Only methods of builtin types run, so no guest code does.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from agex.values.base.type_checks import is_exactly, type_name

__all__ = ["diff_values", "show_value"]

_SMALL = 60  # characters of a value that is shown as it is
_LINES = 20  # of a difference; longer ones are read with other tools
_ITEMS = 200  # of a container that is compared item by item
_ATOMS = (type(None), bool, int, float, complex, str, bytes)


def diff_values(old: Any, new: Any) -> str | None:
    """Say what changed, in at most some twenty short lines.

    Texts of several lines give a unified diff, small values ``3 -> 4``, containers a line for each item,
    arrays and frames their shapes.

    Returns:
        None where nothing short can be said.
    """
    kinds = {type(old), type(new)}
    if kinds == {str} and ("\n" in old or "\n" in new):
        lines: Iterator[str] = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        return _bounded(list(lines)[2:])
    if kinds == {dict}:
        return _items(_mapping(old, new), len(old) + len(new))
    if kinds in ({list}, {tuple}):
        return _items(_sequence(old, new), len(old) + len(new))
    if kinds == {set}:
        return _items(_members(old, new), len(old) + len(new))
    before, after = show_value(old), show_value(new)
    return None if before is None or after is None or before == after else f"{before} -> {after}"


def _items(changes: Callable[[], Iterator[str]], size: int) -> str | None:
    if size > 2 * _ITEMS:
        return None
    return _bounded(list(changes()))


def _mapping(old: dict[Any, Any], new: dict[Any, Any]) -> Callable[[], Iterator[str]]:
    def changes() -> Iterator[str]:
        if not all(type(key) in _ATOMS for key in (*old, *new)):
            return
        for key, value in old.items():
            if key not in new:
                yield f"- {_key(key)}: {_named(value)}"
            elif not _same(value, new[key]):
                yield f"{_key(key)}: {_named(value)} -> {_named(new[key])}"
        for key, value in new.items():
            if key not in old:
                yield f"+ {_key(key)}: {_named(value)}"

    return changes


def _sequence(old: Any, new: Any) -> Callable[[], Iterator[str]]:
    def changes() -> Iterator[str]:
        before, after = [_named(each) for each in old], [_named(each) for each in new]
        for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind == "replace" and b - a == d - c:
                for n in range(b - a):
                    yield f"[{c + n}]: {before[a + n]} -> {after[c + n]}"
            elif kind != "equal":
                yield from (f"- [{n}]: {before[n]}" for n in range(a, b))
                yield from (f"+ [{n}]: {after[n]}" for n in range(c, d))

    return changes


def _members(old: set[Any], new: set[Any]) -> Callable[[], Iterator[str]]:
    def changes() -> Iterator[str]:
        if all(type(each) in _ATOMS for each in (*old, *new)):
            yield from sorted(f"- {_named(each)}" for each in old - new)
            yield from sorted(f"+ {_named(each)}" for each in new - old)

    return changes


def _same(old: Any, new: Any) -> bool:
    if type(old) is not type(new):
        return False
    return (
        bool(old == new)
        if type(old) in _ATOMS
        else _named(old) == _named(new) and show_value(old) is not None
    )


def _bounded(lines: list[str]) -> str | None:
    if not lines:
        return None
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"... {len(lines) - _LINES + 1} more lines"]
    return "\n".join(line if len(line) <= 3 * _SMALL else line[: 3 * _SMALL - 3] + "..." for line in lines)


def _key(key: Any) -> str:
    return _cut(repr(key))


def _named(value: Any) -> str:
    return show_value(value) or f"<{type_name(value)}>"


def show_value(value: Any) -> str | None:
    """Return a value as text, without running any code but that of builtin types; None for a large one."""
    kind = type(value)
    if kind in {str, bytes}:
        return _cut(repr(value[: _SMALL + 1]))
    if kind in _ATOMS:
        return (
            _cut(repr(value))
            if kind is not int or value.bit_length() < 4 * _SMALL
            else f"<int of {value.bit_length()} bits>"
        )
    if kind in {list, tuple, dict, set, frozenset}:
        return f"<{kind.__name__} of {len(value)}>" if not _is_flat(value) else _cut(repr(value))
    shape = value.shape if any(is_exactly(kind, *table) for table in _TABLES) else None
    if type(shape) is tuple:
        return f"<{kind.__name__} of {' x '.join(map(str, shape)) or 'no dimension'}>"
    return None


_TABLES = (
    ("numpy", "ndarray"),
    ("pandas", "DataFrame"),
    ("pandas", "Series"),
    ("polars", "DataFrame"),
    ("polars", "Series"),
    ("pyarrow", "Table"),
)


def _is_flat(value: Any) -> bool:
    parts = (*value, *value.values()) if type(value) is dict else tuple(value) if len(value) < 9 else ()
    return len(value) < 9 and all(
        type(p) in _ATOMS and (type(p) is not int or p.bit_length() < 99) for p in parts
    )


def _cut(text: str) -> str:
    return text if len(text) <= _SMALL else text[: _SMALL - 3] + "..."
