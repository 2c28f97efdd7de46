"""Print what a large workspace costs: ``python -m bench.workspace [--files N] [--megabytes N]``."""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from agex import Disk, Versioned
from agex.files import VirtualFiles, Workspace
from agex.files.recap import recap
from agex.sandbox import Sandbox

ROUNDS = 15


def fill(state: Versioned, count: int, size: int) -> None:
    """Write *count* files of *size* bytes, no two alike, in 100 directories."""
    files = VirtualFiles(state.files)
    generator = random.Random(1)  # noqa: S311 - bytes to fill files with
    for number in range(count):
        files.write(f"/data/{number % 100:02}/{number}.bin", generator.randbytes(size))
    state.commit("fill")


def main() -> None:
    """Fill a workspace, then measure it beside an empty one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        empty, full = Path(directory) / "empty", Path(directory) / "full"
        for place, count in ((empty, 0), (full, options.files)):
            state = Versioned(Disk(place))
            fill(state, count, options.megabytes * 1_000_000 // max(count, 1))
            state.close()
        print(f"{options.files:,} files, {options.megabytes} MB, beside none; medians of {ROUNDS} pairs, ms")
        print(f"  {'':44} {'empty':>8} {'full':>8} {'ratio':>8} {'CPU, full':>10}")
        show("first look in a new process", paired(lambda: first_look(empty), lambda: first_look(full)))
        compare(empty, full)


def first_look(directory: Path) -> None:
    """List the root of a state that was just opened."""
    with closing(Versioned(Disk(directory))) as state:
        VirtualFiles(state.files).list("/")


def compare(empty: Path, full: Path) -> None:
    """Print what the same work costs in both."""
    with closing(Versioned(Disk(empty))) as few, closing(Versioned(Disk(full))) as many:
        of_many = rows_of(many)
        for name, work in rows_of(few).items():
            show(name, paired(work, of_many[name]))
        files = VirtualFiles(many.files)
        session = Sandbox(fs=Workspace(files)).session()
        numbers = iter(range(ROUNDS))
        alone: dict[str, Callable[[], object]] = {
            "list every path": lambda: files.list("/", recursive=True),
            "list one directory": lambda: files.list("/data/07"),
            "os.listdir in guest code": lambda: session.run("import os\nos.listdir('/data/07')"),
            "read one file": lambda: files.read(f"/data/07/{next(numbers) * 100 + 7}.bin"),
        }
        for name, work in alone.items():
            took = [timed(work) for _ in range(ROUNDS)]
            wall, cpu = (statistics.median(each) for each in zip(*took, strict=True))
            print(f"  {name:44} {'':8} {wall:8.2f} {'':8} {cpu:10.2f}")


def rows_of(state: Versioned) -> dict[str, Callable[[], object]]:
    """Return what is measured in both, over one state."""
    files = VirtualFiles(state.files)
    session = Sandbox(fs=Workspace(files)).session()

    def touch() -> None:
        session.run(f"open('/one.txt', 'w').write('{random.random()}')")  # noqa: S311 - not the same twice
        state.commit()

    def touch_nothing() -> None:
        session.run("x = 1")
        state.commit()

    return {
        "a turn that touches nothing, no commit": touch_nothing,
        "a turn that touches one file, one commit": touch,
        "list the root": lambda: files.list("/"),
        "recap for the prompt": lambda: recap(files, 2_800),
    }


Took: TypeAlias = tuple[float, float]
"""Milliseconds on the clock, and of the processor."""


def timed(work: Callable[[], object]) -> Took:
    """Do some work once."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - clock) * 1000, (time.process_time() - processor) * 1000


def paired(one: Callable[[], object], other: Callable[[], object]) -> list[tuple[Took, Took]]:
    """Do the work of both by turns, so that what else the machine does weighs on both."""
    one()
    other()
    return [(timed(one), timed(other)) for _ in range(ROUNDS)]


def show(name: str, pairs: list[tuple[Took, Took]]) -> None:
    """Print the medians of some pairs, and that of their ratios."""
    few, many = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
    ratio = statistics.median(other[0] / max(one[0], 1e-6) for one, other in pairs)
    cpu = statistics.median(other[1] for _, other in pairs)
    print(f"  {name:44} {few:8.2f} {many:8.2f} {ratio:8.2f} {cpu:10.2f}")


if __name__ == "__main__":
    main()
