"""Workers of one store, killed with -9 at random points, until all runs are done.

    python -m bench.state.lost_workers --runs 200 --workers 3
    python -m bench.state.lost_workers --runs 200 --workers 3 --dsn "host=127.0.0.1 user=... dbname=..."
    python -m bench.state.lost_workers --runs 200 --workers 3 --redis redis://127.0.0.1:6379/0

Each run makes three calls to the world, which is a file that a line is appended to for each. At random points
a worker is killed, or the process in which its guest code runs; with PostgreSQL, connections are cut by a
proxy. At the end each call was made once, or is in doubt in the value of its run: then it was made once or
not at all.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agex import Agent, Disk, Versioned, runs
from agex.durable import Report, Worker, enqueue
from agex.state.kv.store import KVStore
from agex.testing import ScriptedModel

CALLS = ("a", "b", "c")
LEASE = 1.0
FIRST = """```python
def safe(name):
    try:
        return charge(number, name)
    except RuntimeError as doubt:
        assert type(doubt).__name__ == "CallInDoubt", doubt
        return f"{name} is in doubt"

made = [safe("a"), safe("b")]
```"""
SECOND = '```python\nmade.append(safe("c"))\ntask_success(made)\n```'


def answer(messages: list[Any]) -> str:
    """Answer as a model that tries again what failed."""
    shown = [str(message.content) for message in messages if message.role == "user"]
    replies = [str(message.content) for message in messages if message.role == "assistant"]
    if not replies:
        return FIRST
    failed = "Error" in shown[-1]
    return FIRST if failed and "made = [" in replies[-1] else SECOND


def task_over(world: int, pause: float, isolation: Any) -> Any:
    """Return the task; its function appends to the file *world*, with pauses in which it may be killed."""
    agent = Agent(model=ScriptedModel(answer), name="killed", fs=None, isolation=isolation)
    luck = random.Random()  # noqa: S311 - it guards nothing

    @agent.fn(external=True)
    def charge(number: int, name: str) -> str:
        """Charge."""
        time.sleep(luck.random() * pause)
        os.write(world, f"{number} {name}\n".encode())
        time.sleep(luck.random() * pause)
        return f"{name} is paid"

    @agent.task
    def pay(number: int) -> list[str]:
        """Pay three times."""

    return pay


def forked(work: Callable[[], object]) -> int:
    """Do something in a process of its own; return its id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def cut_connections(listener: socket.socket, to: tuple[str, int], patience: float) -> None:
    """Pass on what comes to *listener*, and cut each connection after a random time, two in three."""
    luck = random.Random()  # noqa: S311 - it guards nothing

    def copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(client: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it is over already
            client.shutdown(socket.SHUT_RDWR)

    while True:
        client, _ = listener.accept()
        server = socket.create_connection(to)
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=copy, args=(one, other), daemon=True).start()
        if luck.random() < 0.67:
            timer = threading.Timer(luck.random() * patience * 3, cut, [client])
            timer.daemon = True
            timer.start()


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has begun, and those of these."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = list(parents.get(pid, []))
    for one in found:
        found += parents.get(one, [])
    return found


def opened(where: str) -> KVStore:
    """Open the store of all runs."""
    if where.startswith("redis://"):
        from agex.state.redis import RedisStore

        return RedisStore(where)
    if "=" not in where:
        return Disk(where)
    from agex.state.postgres import PostgresStore

    return PostgresStore(where)


class Chaos:
    """The workers of a store, and the one who kills them.

    Args:
        where: the store.
        world: the file of the calls.
        options: of the command line.
    """

    def __init__(self, where: str, world: int, options: argparse.Namespace) -> None:
        self.figures: collections.Counter[str] = collections.Counter()
        self._where = where
        self._world = world
        self._options = options
        self._luck = random.Random(options.seed)  # noqa: S311 - it guards nothing
        self._ended, self._told = os.pipe()
        os.set_blocking(self._ended, False)

    def work(self) -> None:
        """Be a worker."""
        options = self._options

        def tell(report: Report) -> None:
            os.write(self._told, f"{report.what} {report.branch} {report.text[:300]!r}\n".encode())

        worker = Worker(
            [task_over(self._world, options.pause, options.isolation)],
            opened(self._where),
            lease=LEASE,
            poll=0.02,
            attempts=10_000,  # the run is not to blame
            on_report=tell,
        )
        worker.run()

    def go_on(self, count: int) -> None:
        """Kill workers and begin others until all runs are over."""
        living: dict[int, float] = {}
        over: set[str] = set()
        deadline = time.monotonic() + self._options.limit
        try:
            while len(over) < count:
                if time.monotonic() > deadline:
                    self.figures["not over"] = count - len(over)
                    return
                while len(living) < self._options.workers:
                    living[forked(self.work)] = self._next()
                    self.figures["workers"] += 1
                over |= set(self._news())
                for pid, at in list(living.items()):
                    if time.monotonic() > at and self._kill(pid):
                        del living[pid]
                    elif time.monotonic() > at:
                        living[pid] = self._next()
                time.sleep(0.005)
        finally:
            for pid in living:
                bury(pid)

    def _next(self) -> float:
        return time.monotonic() + self._luck.random() * self._options.patience

    def _kill(self, pid: int) -> bool:
        """Kill a worker, or the process of its guest code; return whether the worker is gone."""
        guests = descendants(pid) if self._options.isolation != "none" else []
        if guests and self._luck.random() < 0.5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._luck.choice(guests), signal.SIGKILL)
            self.figures["guests killed"] += 1
            return False
        bury(pid)
        self.figures["killed"] += 1
        return True

    def _news(self) -> Iterator[str]:
        with contextlib.suppress(BlockingIOError):
            for line in os.read(self._ended, 1 << 16).decode().splitlines():
                what, branch, _ = line.split(" ", 2)
                self.figures[what] += 1
                if what in {"failed", "left"} and branch:
                    print(line, file=sys.stderr)
                if what in {"done", "failed"}:
                    yield branch


def bury(pid: int) -> None:
    """Kill a worker and what it has begun."""
    below = descendants(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for one in below:  # a guest's process ends by itself when its host is gone; this one does not wait for it
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Kill and go on until all runs are over; return the figures."""
    home = Path(tempfile.mkdtemp(prefix="agex-lost-"))
    where = through = options.dsn or options.redis or str(home / "store")
    proxy = None
    if options.dsn:
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        parts = conninfo_to_dict(options.dsn)
        listener = socket.create_server(("127.0.0.1", 0))
        to = (str(parts.get("host", "127.0.0.1")), int(parts.get("port") or 5432))
        proxy = forked(lambda: cut_connections(listener, to, options.patience))
        through = make_conninfo(options.dsn, host="127.0.0.1", port=str(listener.getsockname()[1]))
    world = os.open(home / "world", os.O_CREAT | os.O_APPEND | os.O_RDWR)
    task = task_over(world, options.pause, options.isolation)
    store = opened(where)
    for number in range(options.runs):
        enqueue(task.using(state=Versioned(store, branch=f"run-{number}", create=True)), number)
    store.close()
    chaos, began = Chaos(through, world, options), time.monotonic()
    try:
        chaos.go_on(options.runs)
    finally:
        if proxy is not None:
            bury(proxy)
    seconds = round(time.monotonic() - began, 1)
    store = opened(where)
    found = judged(store, task, options.runs, (home / "world").read_text())
    store.close()
    os.close(world)
    shutil.rmtree(home)
    return {"runs": options.runs, "seconds": seconds, **chaos.figures, **found}


def judged(store: KVStore, task: Any, count: int, world: str) -> dict[str, Any]:
    """Compare what the runs say with what the world has."""
    made = collections.Counter(world.splitlines())
    once = doubtful = 0
    wrong: list[str] = []
    for number in range(count):
        state = Versioned(store, branch=f"run-{number}")
        (info,) = runs(state)
        if info.status == "open":
            continue
        value = task.resume(state=state, run_id=info.run_id).value if info.status == "done" else []
        if len(value) != len(CALLS):
            wrong.append(f"run {number} is {info.status}: {value}")
        for name, said in zip(CALLS, value, strict=False):
            times = made.pop(f"{number} {name}", 0)
            if said == f"{name} is paid" and times == 1:
                once += 1
            elif said == f"{name} is in doubt" and times <= 1:
                doubtful += 1
            else:
                wrong.append(f"run {number}: {said!r}, made {times} times")
    wrong += [f"{call!r} was made {times} times" for call, times in made.items() if times > 1]
    return {"once": once, "in doubt": doubtful, "wrong": wrong}


def main() -> None:
    """Run it and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--dsn", help="of a PostgreSQL database; a directory if not given")
    parser.add_argument("--redis", help="url of a Redis server, in place of both")
    parser.add_argument("--isolation", default="process", help="where guest code runs")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds that a call takes at most, twice")
    parser.add_argument("--patience", type=float, default=6.0, help="seconds until a kill, at most")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for all of it")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    found = measure(options)
    print(json.dumps(found, indent=2))
    if found["wrong"] or found.get("not over"):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
