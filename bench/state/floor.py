"""A commit of one of N keys, beside the smallest durable thing there is: a row of 1 KB in SQLite.

Disks differ by a factor of forty within an hour, so the two are timed in turn, pair by pair, in
one process, at one sync level. Run it with ``python -m bench.state.floor``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agex.state.commits.journal import Draft, Journal
from agex.state.disk.disk import Disk
from agex.state.kv.memory import Memory

__all__ = ["Commits", "main", "measure_commits", "measure_open"]

SIZES = (10, 100, 1_000, 10_000, 100_000)
_PAYLOAD = 56  # bytes of a changed value: a small variable
_EVENT = 300  # bytes: what an action's event takes at least


@dataclass(frozen=True, kw_only=True)
class Commits:
    """What a commit of one changed key costs among N."""

    store: str
    durable: bool
    keys: int
    milliseconds: float
    """Median."""
    floor: float
    """Median milliseconds of a SQLite transaction of 1 KB, taken in turn with the commits."""
    ratio: float
    """Median of the pairs' ratios."""


class Floor:
    """A SQLite database that takes rows of 1 KB, a transaction each."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        self.database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, value BLOB)")

    def commit(self) -> None:
        """Write one row."""
        self.database.execute("BEGIN IMMEDIATE")
        self.database.execute("INSERT INTO rows (value) VALUES (?)", (os.urandom(1024),))
        self.database.execute("COMMIT")


class Writer:
    """A branch that is committed to, one changed key at a time."""

    def __init__(self, journal: Journal, keys: int) -> None:
        self.journal = journal
        self.keys = keys
        self.number = 0
        seed = {f"v/variable{number}": os.urandom(_PAYLOAD) for number in range(keys)}
        self.head = journal.commit(Draft(changes=seed, time=0.0), branch="main", expect=None)

    def commit(self) -> None:
        """Change one key."""
        self.number += 1
        key = f"v/variable{self.number * 7919 % self.keys}"
        draft = Draft(
            parents=(self.head,),
            changes={key: os.urandom(_PAYLOAD)},
            events=[bytes(_EVENT)],
            time=float(self.number),
            message="turn",
        )
        self.head = self.journal.commit(draft, branch="main", expect=self.head)


def measure_commits(store: str, *, durable: bool, keys: int, pairs: int) -> Commits:
    """Time commits and the floor in turn."""
    home = Path(tempfile.mkdtemp(prefix="agex-bench-"))
    opened = Memory() if store == "memory" else Disk(home / "store", durable=durable)
    try:
        writer = Writer(opened.journal(), keys)
        floor = Floor(home / "floor.db", durable=durable)
        opened.close()  # the log of the first commit is taken in, and not by one of those measured
        for _ in range(10):
            floor.commit()
            writer.commit()
        times = [(_timed(floor.commit), _timed(writer.commit)) for _ in range(pairs)]
        floor.database.close()
    finally:
        opened.close()
        shutil.rmtree(home)
    return Commits(
        store=store,
        durable=durable,
        keys=keys,
        milliseconds=statistics.median(ours for _, ours in times) * 1e3,
        floor=statistics.median(base for base, _ in times) * 1e3,
        ratio=statistics.median(ours / base for base, ours in times),
    )


def measure_open(keys: int, repeats: int) -> dict[str, float]:
    """Time opening a store of N keys, in milliseconds: alone, and with reading one key at its head."""
    home = Path(tempfile.mkdtemp(prefix="agex-bench-"))
    try:
        store = Disk(home / "store", durable=False)
        Writer(store.journal(), keys)
        store.close()
        opened, read, listed = [], [], []
        for _ in range(repeats):
            begin = time.perf_counter()
            store = Disk(home / "store")
            journal = store.journal()
            head = journal.branches()["main"]
            opened.append(time.perf_counter() - begin)
            journal.read(head, "v/variable0")
            read.append(time.perf_counter() - begin)
            journal.keys(head)
            listed.append(time.perf_counter() - begin)
            store.close()
    finally:
        shutil.rmtree(home)
    labels = ("open", "open and read a key", "open and list all keys")
    return {
        f"{label}, {keys:,} keys, ms": statistics.median(times) * 1e3
        for label, times in zip(labels, (opened, read, listed), strict=True)
    }


def _timed(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options = parser.parse_args()
    print(f"{'one of N keys changed':<28}{'N':>9}{'ms':>9}{'floor, ms':>12}{'ratio':>8}")
    for store, durable in (("disk", True), ("disk", False), ("memory", False)):
        for keys in map(int, options.sizes.split(",")):
            found = measure_commits(store, durable=durable, keys=keys, pairs=options.pairs)
            label = f"{store}, synchronous={'FULL' if durable else 'NORMAL'}" if store == "disk" else store
            line = f"{label:<28}{keys:>9,}{found.milliseconds:>9.3f}{found.floor:>12.3f}{found.ratio:>8.2f}"
            print(line, flush=True)
    for label, value in measure_open(100_000, 9).items():
        print(f"{label:<48}{value:>10.2f}")


if __name__ == "__main__":
    main()
