"""Print what a large workspace costs: ``python -m bench.workspace [--files N] [--megabytes N]``."""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agex import Disk, Versioned
from agex.files import VirtualFiles, Workspace
from agex.files.recap import recap
from agex.sandbox import Sandbox

ROUNDS = 15


def timed(work: Callable[[int], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the median and the worst of some rounds, in milliseconds."""
    took = []
    for number in range(rounds):
        start = time.perf_counter()
        work(number)
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took), max(took)


def fill(state: Versioned, count: int, size: int) -> None:
    """Write *count* files of *size* bytes, no two alike, in 100 directories."""
    files = VirtualFiles(state.files)
    generator = random.Random(1)  # noqa: S311 - bytes to fill files with
    for number in range(count):
        files.write(f"/data/{number % 100:02}/{number}.bin", generator.randbytes(size))
    state.commit("fill")


def main() -> None:
    """Fill a workspace, then measure it and an empty one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        for title, count, megabytes in (("empty", 0, 0), ("full", options.files, options.megabytes)):
            measure(Path(directory) / title, title, count, megabytes)


def measure(directory: Path, title: str, count: int, megabytes: int) -> None:
    """Print the figures of one workspace."""
    state = Versioned(Disk(directory))
    start = time.perf_counter()
    fill(state, count, megabytes * 1_000_000 // max(count, 1))
    print(f"\n{title}: {count:,} files, {megabytes} MB, filled in {time.perf_counter() - start:.1f} s")
    state.close()

    state = Versioned(Disk(directory))
    files = VirtualFiles(state.files)
    start = time.perf_counter()
    files.list("/")
    print(f"  {'first look in a new process':44} {(time.perf_counter() - start) * 1000:8.2f} ms")
    session = Sandbox(fs=Workspace(files)).session()

    def turn(number: int) -> None:
        session.run(f"open('/one.txt', 'w').write('{number}')")
        state.commit()

    def no_turn(number: int) -> None:
        session.run(f"x = {number}")
        state.commit()

    rows: dict[str, Callable[[int], object]] = {
        "a turn that touches nothing": no_turn,
        "a turn that touches one small file": turn,
        "list the root": lambda _: files.list("/"),
        "list every path": lambda _: files.list("/", recursive=True),
        "recap for the prompt": lambda _: recap(files, 2_800),
    }
    if count:
        rows |= {
            "list one directory": lambda _: files.list("/data/07"),
            "os.listdir in guest code": lambda _: session.run("import os\nos.listdir('/data/07')"),
            "read one file": lambda number: files.read(f"/data/07/{number * 100 + 7}.bin"),
        }
    for name, work in rows.items():
        median, worst = timed(work)
        print(f"  {name:44} {median:8.2f} ms, at most {worst:.2f}")
    state.close()


if __name__ == "__main__":
    main()
