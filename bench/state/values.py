"""What it costs to see whether variables changed, to encode, to cut and to load them.

``python bench/state/values.py`` prints medians of this machine, each beside a floor of the same run: the
reading of the same memory by the digest alone, or the C pickler alone.
"""

from __future__ import annotations

import pickle
import statistics
import time
from collections.abc import Callable
from typing import Any

from agex.values import Allow, cut, decode, encode, fingerprint, from_recipe
from agex.values.base.fingerprint import digest
from agex.values.base.group import BLOCK

ROUNDS = 7
ALLOW = Allow()


def milliseconds(work: Callable[[], Any]) -> float:
    """Return the median time of some calls."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def address(data: memoryview) -> bytes:
    """Return the address of a chunk, as a store computes it."""
    try:
        import blake3
    except ImportError:
        import hashlib

        return hashlib.blake2b(data, digest_size=32).digest()
    return blake3.blake3(data).digest()


def line(name: str, took: float, floor: float, what: str) -> None:
    """Print one figure."""
    print(f"{name:<44}{took:9.3f} ms   {took / floor:6.2f}x of {what} ({floor:.3f} ms)")


def look(variables: dict[str, Any]) -> list[Any]:
    """See what variables are now: what a commit does with those that a turn touched."""
    return [fingerprint(group) for group in encode(variables, allow=ALLOW)]


def frame() -> None:
    """Measure 100 MB in one frame."""
    import numpy as np
    import pandas as pd

    data = pd.DataFrame(np.random.default_rng(0).random((130_000, 100)))
    memory = memoryview(data._mgr.blocks[0].values.T.reshape(-1).view("u1"))

    def floor() -> None:
        for start in range(0, memory.nbytes, BLOCK):
            digest(memory[start : start + BLOCK])

    variables = {"df": data}
    line("100 MB frame, unchanged", milliseconds(lambda: look(variables)), milliseconds(floor), "xxh3 alone")
    (group,) = encode(variables, allow=ALLOW)
    before = fingerprint(group)
    whole = cut(group, address)
    data.iloc[70_000, 50] = 1.0
    (group,) = encode(variables, allow=ALLOW)
    now = fingerprint(group)

    def again() -> None:
        (group,) = encode(variables, allow=ALLOW)
        cut(group, address, now=fingerprint(group), before=(before, whole.recipe))

    line("100 MB frame, one cell changed", milliseconds(again), milliseconds(floor), "xxh3 alone")
    changed = cut(group, address, now=now, before=(before, whole.recipe))
    data_chunks = [c for c in changed.chunks.values() if c.nbytes == BLOCK]
    print(f"{'  chunks of data, of recipe':<44}{len(data_chunks)}, {len(changed.chunks) - len(data_chunks)}")
    written = sum(chunk.nbytes for chunk in changed.chunks.values())
    print(f"{'  bytes of chunks, of payload':<44}{written}, {len(changed.payload)}")
    store = {key: bytes(value) for key, value in {**whole.chunks, **changed.chunks}.items()}
    took = milliseconds(lambda: decode(from_recipe(changed.payload, store.__getitem__), allow=ALLOW))
    copied = milliseconds(lambda: bytearray().join(store.values()))
    line("100 MB frame, loaded", took, copied, "copying its chunks")


def records() -> None:
    """Measure many small dicts."""
    rows = [{"id": i, "name": f"row {i}", "value": i / 3, "tags": ["a", "b"]} for i in range(100_000)]
    took = milliseconds(lambda: look({"rows": rows}))
    line("100 000 dicts, unchanged", took, milliseconds(lambda: pickle.dumps(rows, 5)), "pickle alone")
    (group,) = encode({"rows": rows}, allow=ALLOW)
    stream = pickle.dumps(rows, 5)
    took = milliseconds(lambda: decode(group, allow=ALLOW))
    line("100 000 dicts, loaded", took, milliseconds(lambda: pickle.loads(stream)), "pickle alone")  # noqa: S301
    numbers = list(range(1_000_000))
    took = milliseconds(lambda: look({"numbers": numbers}))
    line("1 000 000 ints, unchanged", took, milliseconds(lambda: pickle.dumps(numbers, 5)), "pickle alone")


def small() -> None:
    """Measure a hundred small variables."""
    variables: dict[str, Any] = {f"v{i}": [i, "x" * (i % 7), {"k": i}] for i in range(50)}
    variables |= {f"n{i}": i for i in range(50)}
    took = milliseconds(lambda: look(variables))
    line(
        "100 small variables, unchanged",
        took,
        milliseconds(lambda: pickle.dumps(variables, 5)),
        "pickle alone",
    )
    one = {"text": "x" * 56}
    took = milliseconds(lambda: look(one))
    line(
        "a text of 56 characters, unchanged", took, milliseconds(lambda: pickle.dumps(one, 5)), "pickle alone"
    )
    (group,) = encode(one, allow=ALLOW)
    print(f"{'  bytes of its payload':<44}{len(cut(group, address).payload)}")


if __name__ == "__main__":
    frame()
    records()
    small()
