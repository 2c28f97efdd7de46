"""A history of thousands of commits: what it takes, and how fast its beginning is reached.

Run it with ``python -m bench.state.history``.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agex.state.commits.journal import Draft, Journal
from agex.state.disk.disk import Disk

__all__ = ["main", "measure_history"]

_KEYS = 100


def measure_history(commits: int, *, repeats: int = 9) -> dict[str, float]:
    """Write a history of 56-byte changes to 100 keys, and ask for its ends."""
    home = Path(tempfile.mkdtemp(prefix="agex-bench-"))
    try:
        store = Disk(home / "store", durable=False)
        journal = store.journal()
        seed = {f"variable{number}": bytes(56) for number in range(_KEYS)}
        first = journal.commit(Draft(changes=seed, time=0.0), branch="main", expect=None)
        store.close()
        before = _size(home)
        head = first
        for number in range(commits):
            changes = {f"variable{number % _KEYS}": b"%056d" % number}
            draft = Draft(parents=(head,), changes=changes, time=float(number), message="turn")
            head = journal.commit(draft, branch="main", expect=head)
        store.close()  # takes SQLite's log in, so that it is not counted
        found = {"bytes of a commit": (_size(home) - before) / commits}
        for label, ask in _questions(home, journal, first, head).items():
            ask()
            found[label] = statistics.median(_timed(ask) for _ in range(repeats)) * 1e3
        begin = time.perf_counter()
        side = journal.commit(Draft(parents=(first,), time=1.0), branch="side", expect=None)
        journal.move("main", side, expect=head)
        collected = journal.gc()
        found["collect all but the oldest, ms"] = (time.perf_counter() - begin) * 1e3
        assert collected.commits == commits
        store.close()
    finally:
        shutil.rmtree(home)
    return found


def _questions(home: Path, journal: Journal, first: str, head: str) -> dict[str, Callable[[], object]]:
    def opened() -> None:
        store = Disk(home / "store")
        store.journal().branches()
        store.close()

    return {
        "checkout of the oldest and a read, ms": lambda: (
            journal.record(first),
            journal.read(first, "variable7"),
        ),
        "all of the oldest, ms": lambda: journal.read_all(first),
        "all of the newest, ms": lambda: journal.read_all(head),
        "keys of the newest, ms": lambda: journal.keys(head),
        "diff of oldest and newest, ms": lambda: journal.diff(first, head),
        "diff of the last two, ms": lambda: journal.diff(journal.record(head).parents[0], head),
        "history, ms": lambda: list(journal.history(head)),
        "open and close, ms": opened,
        "fsck, ms": journal.fsck,
    }


def _size(home: Path) -> int:
    return sum(file.stat().st_size for file in (home / "store").iterdir())


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=10_000)
    options = parser.parse_args()
    print(f"{options.commits:,} commits of 56 bytes, {_KEYS} keys")
    for label, value in measure_history(options.commits).items():
        print(f"{label:<42}{value:>10.3f}", flush=True)


if __name__ == "__main__":
    main()
