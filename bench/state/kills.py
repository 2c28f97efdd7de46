"""Runs killed with -9 at random points, and resumed until they are done.

    python -m bench.state.kills --runs 200 --workers 3
    python -m bench.state.kills --runs 200 --dsn "host=127.0.0.1 user=..."

Each run makes three calls to the world, which is a file that a line is appended to for each. A worker is a
fork of this process; it begins a run, or goes on with it, and is killed after some milliseconds. At the end
each call was made once, or is in doubt in the value of its run: then it was made once or not at all.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agex import Agent, Disk, StateConflict, Versioned, runs
from agex.state.kv.store import KVStore
from agex.testing import ScriptedModel

CALLS = ("a", "b", "c")
CONFLICT = 3
"""The exit code of a worker whose run another one carries on."""
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
    """Answer as a model: by the turn alone."""
    return FIRST if all(message.role != "assistant" for message in messages) else SECOND


def task_over(world: int, pause: float) -> Any:
    """Return the task; its function appends to the file *world*, with pauses in which it may be killed."""
    agent = Agent(model=ScriptedModel(answer), name="killed", fs=None)
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


def work(store: KVStore, number: int, world: int, pause: float) -> int:
    """Begin run *number* on its branch, or go on with it; return the exit code."""
    state = Versioned(store, branch=f"run-{number}", create=True)
    known = runs(state)
    task = task_over(world, pause)
    try:
        if known:
            task.resume(state=state, run_id=known[0].run_id)
        else:
            task(number, state=state)
    except StateConflict:
        return CONFLICT  # another worker carries it on
    return 0


def opened(directory: Path, dsn: str | None) -> KVStore:
    """Open the store of all runs."""
    if dsn is None:
        return Disk(directory)
    from agex.state.postgres import PostgresStore

    return PostgresStore(dsn)


def measure(count: int, workers: int, dsn: str | None, pause: float, patience: float) -> dict[str, Any]:
    """Kill and resume until all runs are done; return the figures."""
    luck = random.Random(7)  # noqa: S311 - it guards nothing
    home = Path(tempfile.mkdtemp(prefix="agex-kills-"))
    world = os.open(home / "world", os.O_CREAT | os.O_APPEND | os.O_RDWR)
    left = set(range(count))
    living: dict[int, tuple[int, float]] = {}
    kills = begun = conflicts = 0
    while left or living:
        while left and len(living) < workers:
            number = luck.choice(sorted(left))
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    code = work(opened(home / "store", dsn), number, world, pause)
                finally:
                    os._exit(code)
            begun += 1
            # Two in three are killed, so that each run comes to its end some day.
            until = time.monotonic() + (luck.random() * patience if luck.random() < 0.67 else 30.0)
            living[pid] = number, until
        for pid, (number, until) in list(living.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del living[pid]
                if status == 0:
                    left.discard(number)
                elif os.WEXITSTATUS(status) == CONFLICT:
                    conflicts += 1
                else:
                    raise SystemExit(f"run {number} failed; its traceback is above")
            elif time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                del living[pid]
                kills += 1
        time.sleep(0.002)
    found = judged(opened(home / "store", dsn), count, (home / "world").read_text())
    os.close(world)
    shutil.rmtree(home)
    return {"runs": count, "workers": begun, "killed": kills, "conflicts": conflicts, **found}


def judged(store: KVStore, count: int, world: str) -> dict[str, Any]:
    """Compare what the runs say with what the world has."""
    made = collections.Counter(world.splitlines())
    once = doubtful = 0
    wrong: list[str] = []
    for number in range(count):
        state = Versioned(store, branch=f"run-{number}")
        (info,) = runs(state)
        value = (
            task_over(0, 0.0).resume(state=state, run_id=info.run_id).value if info.status == "done" else []
        )
        if len(value) != len(CALLS):
            wrong.append(f"run {number} is {info.status}: {value}")
            continue
        for name, said in zip(CALLS, value, strict=True):
            times = made.pop(f"{number} {name}", 0)
            if said == f"{name} is paid" and times == 1:
                once += 1
            elif said == f"{name} is in doubt" and times <= 1:
                doubtful += 1
            else:
                wrong.append(f"run {number}: {said!r}, made {times} times")
    wrong += [f"{call!r} was made by no run" for call in made]
    store.close()
    return {"once": once, "in doubt": doubtful, "wrong": wrong}


def main() -> None:
    """Run it and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--dsn", help="of a PostgreSQL database; a directory if not given")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds that a call takes at most, twice")
    parser.add_argument(
        "--patience", type=float, default=1.0, help="seconds until a worker is killed, at most"
    )
    options = parser.parse_args()
    found = measure(options.runs, options.workers, options.dsn, options.pause, options.patience)
    print(json.dumps(found, indent=2))
    if found["wrong"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
