"""Whole turns of a state on a disk: 98 small variables, a frame of 100 MB, a list of 1e5 dicts, two events.

A turn changes what it says and commits. Its floors are taken in turn with it: a SQLite
transaction of 1 KB at the same sync level for a small turn, a reading of the frame's memory by
xxh3 for one that has to look at the frame. Where kvgit is installed, it does the same turns: it
stages what a turn read again, as it has to find changes made in place.
"""

from __future__ import annotations

import importlib.util
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

__all__ = ["measure_turns"]

_ROWS = 1_250_000  # of 10 columns of 8 bytes: 100 MB
_EVENT = {"text": "x" * 1_000}


def measure_turns(repeats: int) -> dict[str, dict[str, float]]:
    """Time the turns; give for each its milliseconds, those of its floor, the ratio and what it stored."""
    home = Path(tempfile.mkdtemp(prefix="agex-bench-"))
    try:
        sides: dict[str, Any] = {"agex": _Agex(home / "agex")}
        if importlib.util.find_spec("kvgit") is not None:
            sides["kvgit"] = _Kvgit(home / "kvgit")
        floor = Floor(home / "floor.db", durable=True)
        return {
            f"{turn}, {side}": _turn(store, turn, floor, repeats if side == "agex" else 3)
            for turn in ("small", "reads the frame", "changes a cell")
            for side, store in sides.items()
        }
    finally:
        shutil.rmtree(home)


def _turn(store: Any, turn: str, floor: Floor, repeats: int) -> dict[str, float]:
    pairs, stored = [], []
    for number in range(repeats):
        base = _timed(floor.commit) if turn == "small" else _timed(lambda: _read_all(store.frame))
        before = store.size()
        pairs.append((base, _timed(lambda number=number: store.turn(turn, number))))  # type: ignore[misc]
        stored.append(store.size() - before)
    return {
        "ms": statistics.median(ours for _, ours in pairs) * 1e3,
        "floor, ms": statistics.median(base for base, _ in pairs) * 1e3,
        "ratio": statistics.median(ours / base for base, ours in pairs),
        "bytes stored": statistics.median(stored),
    }


def _frame() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(1).random((_ROWS, 10)), columns=[f"c{n}" for n in range(10)])


def _read_all(frame: pd.DataFrame) -> None:
    memory = memoryview(np.ascontiguousarray(frame.to_numpy().T)).cast("B")
    for start in range(0, memory.nbytes, BLOCK):
        digest(memory[start : start + BLOCK])


class _Agex:
    """One turn after another on a `Versioned`; the frame is loaded only by turns that read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.frame = _frame()
        state = Versioned(Disk(path))
        state.update({f"v{n}": n for n in range(98)})
        state["frame"], state["rows"] = self.frame, [{"n": n} for n in range(100_000)]
        state.commit("start")
        state.close()
        self.small = Versioned(Disk(path))
        self.large = self.small.fork("large")
        self.large["frame"]

    def turn(self, turn: str, number: int) -> None:
        """Carry out one turn."""
        state = self.small if turn == "small" else self.large
        for name in ("v1", "v2", "v3"):
            state[name]
        state["v1"] = number
        if turn == "changes a cell":
            state["frame"].iloc[7, 3] = float(number)
        state.record(dict(_EVENT))
        state.record(dict(_EVENT))
        state.commit("turn")

    def size(self) -> int:
        """Return the bytes of all files."""
        return _size(self.path)


class _Kvgit:
    """The same turns on kvgit, with its default codec."""

    def __init__(self, path: Path) -> None:
        import kvgit

        self.path = path
        self.frame = _frame()
        self.tree = kvgit.open("disk", path=str(path))
        for n in range(98):
            self.tree[f"v{n}"] = n
        self.tree["frame"], self.tree["rows"] = self.frame, [{"n": n} for n in range(100_000)]
        self.tree.commit()

    def turn(self, turn: str, number: int) -> None:
        """Carry out one turn."""
        tree = self.tree
        for name in ("v1", "v2", "v3"):
            tree[name] = tree[name]
        tree["v1"] = number
        if turn != "small":
            frame = tree["frame"]
            if turn == "changes a cell":
                frame.iloc[7, 3] = float(number)
            tree["frame"] = frame
        tree[f"event{number}{turn}"] = [_EVENT, _EVENT]
        tree.commit()

    def size(self) -> int:
        """Return the bytes of all files."""
        return _size(self.path)


def _size(path: Path) -> int:
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
