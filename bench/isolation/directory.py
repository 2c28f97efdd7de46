"""The command: ``python -m bench.isolation.directory``: a worker's directory with 10 files and with 10,000.

Each figure with many files is measured in turns with that with few, so that a busy machine slows both. The
last column is a worker without a workspace.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from agex.files import Workspace, connect_fs
from agex.isolation import KernelExecutor
from agex.isolation.worker.host_session import RemoteSession
from agex.sandbox import Limits, Policy

FEW, MANY = 10, 10_000


def main() -> None:
    """Run the benchmark and print its table."""
    executor, policy = KernelExecutor(), Policy.default()

    def opened(files: Workspace | None) -> RemoteSession:
        session = executor.session(policy, Limits(seconds=60), {}, files=files, python="full")
        session.run("x = 1")
        return session

    few, many = filled(FEW), filled(MANY)
    print(f"{'ms, the first start':<44}{once(lambda: opened(few).close()):>10.2f}", end="")
    print(f"{once(lambda: opened(many).close()):>10.2f}")
    starts: list[Callable[[], object]] = [
        lambda: opened(few).close(),
        lambda: opened(many).close(),
        lambda: opened(None).close(),
    ]
    show("ms, a start with the first action", starts, 20)
    sessions = [opened(few), opened(many), opened(None)]
    show("ms, an action that touches no file", [lambda s=s: s.run("x = 1") for s in sessions], 300)
    write = "_ = open('f1.txt', 'a').write('x')"
    show("ms, an action that changes one file", [lambda s=s: s.run(write) for s in sessions], 100)
    show("ms, an action after one that changed a file", [lambda s=s: s.run("x = 1") for s in sessions], 100)
    for session in sessions:
        session.close()
    executor.close()


def filled(count: int) -> Workspace:
    """Return a workspace of that many files of 10 kB."""
    files = connect_fs(type="virtual")
    for number in range(count):
        files.write(f"d{number % 50}/f{number}.txt", bytes(10_000))
    return files


def once(work: Callable[[], object]) -> float:
    """Return the milliseconds that a piece of work takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def show(what: str, works: list[Callable[[], object]], repeats: int) -> None:
    """Print the medians, and the least, of works that are done in turns."""
    taken = [[once(work) for work in works] for _ in range(repeats)]
    columns = list(zip(*taken, strict=True))
    medians = "".join(f"{statistics.median(column):>10.2f}" for column in columns)
    least = "".join(f"{min(column):>10.2f}" for column in columns)
    print(f"{what:<44}{medians}   least{least}")


if __name__ == "__main__":
    main()
