"""What changed, in a few words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agex.values import diff_values

SAID: dict[str, tuple[Any, Any, str | None]] = {
    "numbers": (3, 4, "3 -> 4"),
    "texts": ("a", "b", "'a' -> 'b'"),
    "types": (1, "1", "1 -> '1'"),
    "the same": (1, 1, None),
    "lines": ("a\nb\nc", "a\nx\nc", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c"),
    "a dict": (
        {"a": 1, "b": 2, "c": [1]},
        {"a": 1, "b": 3, "d": None},
        "'b': 2 -> 3\n- 'c': [1]\n+ 'd': None",
    ),
    "a list": ([1, 2, 3], [1, 5, 3, 4], "[1]: 2 -> 5\n+ [3]: 4"),
    "a shorter list": ([1, 2], [2], "- [0]: 1"),
    "a set": ({1, 2}, {2, 3}, "- 1\n+ 3"),
    "arrays": (np.zeros((2, 3)), np.zeros(4), "<ndarray of 2 x 3> -> <ndarray of 4>"),
    "large lists": (list(range(9000)), [], None),
    "unknown objects": (object(), object(), None),
    "a huge number": (1, 1 << 10_000, "1 -> <int of 10001 bits>"),
}


@pytest.mark.parametrize("name", SAID)
def test_a_change_is_told(name: str) -> None:
    old, new, said = SAID[name]
    assert diff_values(old, new) == said


def test_what_is_told_is_short() -> None:
    old = {f"key {i}": "x" * 10_000 for i in range(100)}
    new = {f"key {i}": "y" * 10_000 for i in range(100)}
    told = diff_values(old, new) or ""
    assert len(told.splitlines()) == 20
    assert len(told) < 4000
    assert len(diff_values("a\n" * 1000, "b\n" * 1000) or "") < 4000


def test_no_method_of_the_values_runs() -> None:
    class Loud:
        def _fail(self, *_: Any) -> Any:
            raise AssertionError

        __eq__ = __repr__ = __str__ = __len__ = __hash__ = _fail  # type: ignore[assignment]

    assert diff_values([Loud(), 1], [Loud(), 2]) == "[1]: 1 -> 2"
    assert diff_values({"a": Loud()}, {"a": Loud()}) == "'a': <Loud> -> <Loud>"
