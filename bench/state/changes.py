"""A commit of one changed variable among N small dicts, and beside a frame of 100 MB.

The processor time is compared with that of the same commit among 50. The time until it returns stands
beside a SQLite transaction of 1 KB at the same sync level, and beside one reading of the frame's memory by
xxh3, all taken in turn in one process. Run it with ``python -m bench.state.changes``.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench.state.floor import Floor

from agex.state import Disk, Versioned
from agex.values.base.fingerprint import digest
from agex.values.base.group import BLOCK

__all__ = ["main", "measure_changes", "measure_frame"]

SIZES = (50, 2_000, 5_000)
_ROWS = 1_250_000  # of 10 columns of 8 bytes: 100 MB


class _Side:
    """A state of small dicts, of which one is changed at a time."""

    def __init__(self, path: Path, size: int, *, given_out: bool) -> None:
        self.state = Versioned(Disk(path))
        self.state.update({f"v{n}": {"a": n, "b": f"x{n}", "c": [n, n + 1]} for n in range(size)})
        self.state.commit()
        self.names = self.state.snapshot() if given_out else self.state
        self.number = 0

    def change(self) -> None:
        self.number += 1
        self.names["v7"]["a"] = -self.number

    def commit(self) -> None:
        self.state.commit("turn")


def measure_changes(repeats: int) -> dict[str, dict[str, float]]:
    """Time commits of the host, and of a task, which has all variables in its hands."""
    home = Path(tempfile.mkdtemp(prefix="agex-bench-"))
    try:
        floor = Floor(home / "floor.db", durable=True)
        found: dict[str, dict[str, float]] = {}
        for label, given_out in (("the host's", False), ("a task's", True)):
            sides = {n: _Side(home / f"{n}{given_out}", n, given_out=given_out) for n in SIZES}
            runs: dict[int, list[tuple[float, float, float]]] = {n: [] for n in SIZES}
            for _ in range(repeats):
                for size, side in sides.items():
                    side.change()
                    runs[size].append((*_timed(side.commit), _timed(floor.commit)[1]))
            few = statistics.median(cpu for cpu, _, _ in runs[SIZES[0]])
            for size, rows in runs.items():
                cpu = statistics.median(cpu for cpu, _, _ in rows)
                found[f"{label}, {size:,}"] = {
                    "CPU, ms": cpu * 1e3,
                    "CPU over that of 50": cpu / few,
                    "over a SQLite commit": statistics.median(wall / base for _, wall, base in rows),
                }
                sides[size].state.close()
        return found
    finally:
        shutil.rmtree(home)


def measure_frame(repeats: int) -> dict[str, float]:
    """Time a small commit while a frame of 100 MB is loaded and given out."""
    home = Path(tempfile.mkdtemp(prefix="agex-bench-"))
    try:
        floor = Floor(home / "floor.db", durable=True)
        data = np.random.default_rng(1).random((_ROWS, 10))
        state = Versioned(Disk(home / "store"))
        state["frame"], state["v"] = pd.DataFrame(data), {"a": 0}
        state.commit()
        frame = state["frame"]
        rows = []
        for number in range(repeats):
            state["v"]["a"] = number + 1
            read, sqlite = _timed(lambda: _read(data))[1], _timed(floor.commit)[1]
            rows.append((_timed(state.commit)[1], read, sqlite))
        del frame
        state.close()
        return {
            "commit, ms": statistics.median(row[0] for row in rows) * 1e3,
            "one xxh3 of the frame, ms": statistics.median(row[1] for row in rows) * 1e3,
            "3 SQLite commits, ms": statistics.median(row[2] for row in rows) * 3e3,
            "commit over both": statistics.median(ours / (read + 3 * base) for ours, read, base in rows),
        }
    finally:
        shutil.rmtree(home)


def _read(data: Any) -> None:
    memory = memoryview(data).cast("B")
    for start in range(0, memory.nbytes, BLOCK):
        digest(memory[start : start + BLOCK])


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of this process and the time by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    """Print the tables."""
    for label, row in measure_changes(25).items():
        print(f"{label:<24}", *(f"{name}: {value:.2f}  " for name, value in row.items()))
    for label, value in measure_frame(15).items():
        print(f"{label:<32}{value:>10.2f}")


if __name__ == "__main__":
    main()
