"""What it costs to decode values of many kinds, beside the C unpickler alone in the same run.

``python -m bench.state --only decoding`` prints medians of processor time. Run in turn with two versions of
the package, its times tell whether one of them became slower.
"""

from __future__ import annotations

import gc
import pickle
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from agex.values import Allow, decode, encode

ROUNDS = 5
MANY = 100_000
SPELL = 0.01
"""Seconds that are measured at once."""


def values() -> Iterator[tuple[str, Any]]:
    """Make the values, one at a time."""
    import numpy as np
    import pandas as pd

    texts = {f"c{k}": pd.Series([f"t{i % 5_000 * k}" for i in range(MANY)], dtype=object) for k in range(4)}
    yield "frame of texts as objects", pd.DataFrame(texts)
    yield "records", [{"id": i, "name": f"row {i}", "value": i / 3, "tags": ["a", "b"]} for i in range(MANY)]
    yield "list of floats", [i / 3 for i in range(5 * MANY)]
    yield "set of tuples", {(i, i + 1) for i in range(MANY)}
    yield "list of tuples", [(i, f"n{i}", i / 3) for i in range(2 * MANY)]
    yield "dict of texts to floats", {f"k{i}": i / 3 for i in range(MANY)}
    yield "dict of floats", {i / 3: i for i in range(MANY // 2)}
    yield "frozenset of floats", frozenset(i / 3 for i in range(MANY))
    yield "small dict", {"a": 1, "b": [1, 2.5, "x"], "c": {"d": (1, 2)}}
    yield "frame of 12 columns", pd.DataFrame({f"c{i}": np.arange(1000.0) + i for i in range(12)})
    levels = pd.MultiIndex.from_product([list("abcdefghij"), range(10)])
    yield "frame with two levels", pd.DataFrame({"v": np.arange(100.0)}, index=levels)


def seconds(work: Callable[[], Any]) -> float:
    """Return the median processor time of some calls."""
    times: list[float] = []
    for _ in range(ROUNDS):
        gc.collect()
        calls, begun = 0, time.process_time()
        while not calls or time.process_time() - begun < SPELL:
            work()
            calls += 1
        times.append((time.process_time() - begun) / calls)
    return statistics.median(times)


def measure_decoding() -> dict[str, dict[str, float]]:
    """Measure each value: milliseconds, those of the unpickler, and the ratio."""
    found: dict[str, dict[str, float]] = {}
    for name, value in values():
        (group,) = encode({"x": value}, allow=Allow())
        plain = pickle.dumps(value, 5)
        took = seconds(lambda group=group: decode(group, allow=Allow()))  # type: ignore[misc]
        floor = seconds(lambda plain=plain: pickle.loads(plain))  # type: ignore[misc]  # noqa: S301
        found[name] = {"ms": took * 1000, "floor, ms": floor * 1000, "ratio": took / floor}
    return found
