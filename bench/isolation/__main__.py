"""The command: ``python -m bench.isolation``, from the root of the repository.

Times are medians. What a level adds to an action, and what a table takes beside its floor, is measured
in turns. The floor of a table that crosses is pickle-5 with its buffers in a memfd, from one process to
another and back, measured in the same run: machines differ too much for times alone.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import pickle
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from agex.cli.benchmark import provenance
from agex.errors import IsolationUnavailable
from agex.isolation import Executor, InProcessExecutor, Level, executor_of
from agex.sandbox import Limits, Policy

LEVELS: tuple[Level, ...] = ("none", "process", "kernel", "container")
MB = 1 << 20


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write everything to this file, as JSON")
    options = parser.parse_args()
    found: dict[str, Any] = {"floor": floors()}
    for level in LEVELS:
        try:
            found[level] = measured(executor_of(level))
        except IsolationUnavailable as error:
            found[level] = {"unavailable": str(error)}
    for level, figures in found.items():
        for what, value in figures.items():
            print(f"{level:<11}{what:<44}{value if isinstance(value, str) else f'{value:10.3f}'}")
    if options.out is not None:
        document = {**provenance(), "figures": found}
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def timed(work: Callable[[], Any], repeats: int) -> float:
    """Return the median of the milliseconds that *work* takes."""
    taken: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken)


def paired(work: Callable[[], Any], beside: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Run two things in turns, so that a busy machine slows both; return their medians in milliseconds."""
    taken: list[tuple[float, float]] = [(timed(work, 1), timed(beside, 1)) for _ in range(repeats)]
    return statistics.median(one for one, _ in taken), statistics.median(other for _, other in taken)


def policy_of() -> Policy:
    """Return a policy with pandas, and a function of the host."""
    policy = Policy.default()
    policy.module(pd)
    policy.fn(lambda x: x, name="same")
    return policy


def frame_of(megabytes: int) -> pd.DataFrame:
    """Return a table of floats of that size."""
    rows = megabytes * MB // 8 // 4
    return pd.DataFrame({name: np.arange(rows, dtype=float) for name in "abcd"})


def measured(executor: Executor) -> dict[str, float]:
    """Measure one level."""
    policy, limits = policy_of(), Limits(seconds=60)

    def started() -> Any:
        session = executor.session(policy, limits, {})
        session.open()
        return session

    first = timed(lambda: started().close(), 1)
    again = timed(lambda: started().close(), 5 if executor.level == "container" else 20)
    session = started()
    figures = {
        "ms, the first start, with pandas": first,
        "ms, a start, with pandas": again,
        "ms, an action (x = 1)": timed(lambda: session.run("x = 1"), 300),
        "ms, 1000 calls of the host in one action": timed(
            lambda: session.run("for i in range(1000): same(i)"), 3
        ),
    }
    here = InProcessExecutor().session(policy, limits, {})
    action, least = paired(lambda: session.run("x = 1"), lambda: here.run("x = 1"), 500)
    figures["ms, an action beyond one in this process, in turns"] = action - least
    session.run("def f(x): return x")
    function = session.look_up("f")
    figures["ms, a call of a guest's function"] = timed(lambda: function(1), 300)
    for megabytes in (50, 100):
        table = frame_of(megabytes)
        crossed, floor = paired(lambda: function(table), lambda: echoed(table), 7)  # noqa: B023 - called here
        figures[f"ms, a table of {megabytes} MB in and out"] = crossed
        figures[f"of the floor, a table of {megabytes} MB, in turns"] = crossed / floor
    session.close()
    return figures


def floors() -> dict[str, float]:
    """Measure pickle-5 over memfd, from this process to a fork of it and back."""
    return {
        f"ms, a table of {megabytes} MB in and out": timed(lambda: echoed(table), 5)  # noqa: B023 - called here
        for megabytes in (50, 100)
        for table in (frame_of(megabytes),)
    }


def echoed(table: pd.DataFrame) -> pd.DataFrame:
    """Send a table through memory that it shares with nobody, twice: in and out."""
    return through(through(table))


def through(table: pd.DataFrame) -> pd.DataFrame:
    """Pickle a table into a memfd, and load it from a mapping of it."""
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(table, 5, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    descriptor = os.memfd_create("floor")
    for view in views:
        at = 0
        while at < view.nbytes:
            at += os.write(descriptor, view[at:])
    memory = memoryview(mmap.mmap(descriptor, sum(view.nbytes for view in views), mmap.MAP_PRIVATE))
    os.close(descriptor)
    cut: list[memoryview] = []
    at = 0
    for view in views:
        cut.append(memory[at : at + view.nbytes])
        at += view.nbytes
    found: pd.DataFrame = pickle.loads(stream, buffers=cut)  # noqa: S301 - our own bytes
    return found


if __name__ == "__main__":
    main()
