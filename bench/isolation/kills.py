"""The command: ``python -m bench.isolation.kills``: tasks whose workers are killed at random moments.

It counts what must not be: a process that is left, a descriptor that stays open in the host or in the process
that forks workers, a commit that is lost or holds half an action.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Literal

from agex import Agent, AgexError, Memory, Versioned
from agex.isolation import executor_of
from agex.isolation.workspace.lower import lowers
from agex.testing import ScriptedModel, python_action

SIGNALS = [*[signal.SIGKILL] * 7, signal.SIGSEGV, signal.SIGABRT, signal.SIGSTOP]
LATEST = 0.05
"""Seconds from a worker's start to the last moment at which it is killed: a task takes about as long."""


def main() -> None:
    """Run tasks, kill their workers, and print what was left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--level", choices=["process", "kernel"], default="process")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--python", choices=["guarded", "full"], default="guarded")
    options = parser.parse_args()
    for what, count in killed(options.level, options.runs, options.seed, options.python).items():
        print(f"{what:<44}{count:>8}")


def killed(
    level: Literal["process", "kernel"],
    runs: int,
    seed: int,
    python: Literal["guarded", "full"] = "guarded",
) -> dict[str, int]:
    """Run tasks one after the other, each with a worker that is killed at some moment.

    Args:
        level: where their code runs.
        runs: their number.
        seed: of the moments.
        python: the interpreter of their code.

    Returns:
        What happened, and what was left, by name.
    """
    chance = random.Random(seed)  # noqa: S311 - moments, no secrets
    executor: Any = executor_of(level)
    launcher = executor._launcher
    state = Versioned(Memory())
    _outcome(level, 0, state, python)  # the process that forks the workers of this task stays, ready for more
    launch, timers, started = launcher.launch, [], []
    counted: Counter[str] = Counter()

    def launched(order: Any, directory: Any = None) -> Any:
        worker = launch(order, directory)
        started.append(worker.pid)
        strike = threading.Timer(chance.random() * LATEST, _strike, [worker, chance.choice(SIGNALS), counted])
        timers.append(strike)
        strike.start()
        return worker

    launcher.launch = launched
    before = _descriptors(os.getpid()), _descriptors(launcher.pid), _left(launcher.pid)
    try:
        for number in range(runs):
            counted[_outcome(level, number, state, python)] += 1
            counted["commits lost or half"] += _is_damaged(state)
            if number % 100 == 99:
                state = _fresh(state, counted)
    finally:
        del launcher.launch
    for timer in timers:
        timer.join()
    _fresh(state, counted)
    after = _descriptors(os.getpid()), _descriptors(launcher.pid)
    return {
        "tasks": runs,
        "workers": len(started),
        **dict(sorted(counted.items())),
        "processes left": _left(launcher.pid) - before[2],
        "descriptors left in the host": after[0] - before[0],
        "descriptors left in the zygote": after[1] - before[1],
        "mounts left": _mounts(),
        "directories in use": sum(each.users for each in lowers.held()),
    }


def _mounts() -> int:
    """Return how many mounts of workers this process sees."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return sum("/stage/" in line or "agex-workspaces" in line for line in lines)


def _outcome(
    level: Literal["process", "kernel"], number: int, state: Versioned, python: Literal["guarded", "full"]
) -> str:
    file = f"\nfile = open('n.txt', 'w')\n_ = file.write('{number}')\nfile.close(); del file"
    codes = [f"n = {number}\nkept = n{file}", "n = -1\nfor i in range(3000): pass", "task_success(None)"]
    model = ScriptedModel([[python_action(code)] for code in (*codes, codes[-1])])
    agent = Agent(model=model, isolation=level, timeout_seconds=0.5, python=python)

    @agent.task
    def work() -> None: ...

    try:
        work(state=state)
    except AgexError as error:
        return f"ended with {type(error).__name__}"
    return "ended well"


def _is_damaged(state: Versioned) -> bool:
    """Tell whether a commit is not what one of the actions left, or the state is not its last one."""
    commits = [dict(state.checkout(one)) for one in state.history()]
    whole = all(one.get("n") in {one.get("kept"), -1} for one in commits if one)
    whole &= all(
        _file(state, commit) == str(dict(state.checkout(commit)).get("kept")).encode()
        for commit in state.history()
        if "kept" in state.checkout(commit)
    )
    return not whole or dict(state) != (commits[0] if commits else {})


def _file(state: Versioned, commit: Any) -> bytes | None:
    """Return the file that the first action wrote, at a commit."""
    return state.checkout(commit).files.get("n.txt")


def _fresh(state: Versioned, counted: Counter[str]) -> Versioned:
    """Check a store as a whole, and go on with another one."""
    counted["commits"] += len(list(state.history()))
    counted["faults that fsck finds"] += len(state.fsck())
    state.close()
    return Versioned(Memory())


def _strike(worker: Any, number: signal.Signals, struck: Counter[str]) -> None:
    if worker._finalizer.alive:
        struck[f"struck by {number.name}"] += 1
    worker._signal(number)


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _left(zygote: int) -> int:
    """Count the processes below a zygote, once it has buried whatever has ended."""
    return len(Path(f"/proc/{zygote}/task/{zygote}/children").read_text(encoding="ascii").split())


if __name__ == "__main__":
    main()
