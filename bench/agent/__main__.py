"""The command: ``python -m bench.agent``, from the root of the repository.

The model is a script, so all that is timed is ours. Each figure is a median; the floor is the same
line of code in plain ``exec``, timed in turns with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agex import Agent
from agex.cli.benchmark import provenance
from agex.testing import ScriptedModel, python_action

TURNS = 10
"""Of one task: what a task costs once is spread over them, as in a real one."""
LINE = "x = 1"
BODY = """\
def count(n: int) -> int:
    total = 0
    for i in range(n):
        total += i % 7
    return total
"""


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="tasks of ten turns each")
    parser.add_argument("--out", type=Path, help="write everything to this file, as JSON")
    options = parser.parse_args()
    found = measure(options.rounds)
    for label, value in found.items():
        print(f"{label:<58}{value:>10.3f}")
    if options.out is not None:
        document = {**provenance(), "figures": found}
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measure(rounds: int) -> dict[str, float]:
    """Measure everything; times are milliseconds, the rest ratios."""
    plain, rich = Agent(max_iterations=TURNS), _with_libraries()
    found = {
        "a turn, nothing registered, ms": _turn(plain, rounds),
        "a turn, numpy, pandas and math registered, ms": _turn(rich, rounds),
        "the first task of an agent with them, ms": _first(_with_libraries),
        "200 tasks at once in one event loop, ms a task": _at_once(200),
        "a function that was returned, over native": _returned(rounds),
    }
    found["a turn over exec of its line"] = found["a turn, nothing registered, ms"] / _floor(rounds)
    return found


def _with_libraries() -> Agent:
    import math

    import numpy as np
    import pandas as pd

    agent = Agent(max_iterations=TURNS)
    for module in (np, pd, math):
        agent.module(module)
    return agent


def _script() -> ScriptedModel:
    lines = [[python_action(LINE)]] * (TURNS - 1)
    return ScriptedModel([*lines, [python_action("task_success(1)")]])


def _task(agent: Agent) -> Any:
    @agent.task
    def answer(n: int) -> int:
        """Answer."""

    return answer


def _turn(agent: Agent, rounds: int) -> float:
    task = _task(agent)
    times = [_timed(agent, task) for _ in range(rounds + 1)]
    return statistics.median(times[1:]) / TURNS


def _timed(agent: Agent, task: Callable[[int], int]) -> float:
    agent.model = _script()
    start = time.perf_counter()
    task(1)
    return (time.perf_counter() - start) * 1e3


def _first(make: Callable[[], Agent]) -> float:
    agents = [make() for _ in range(5)]
    return statistics.median(_timed(agent, _task(agent)) for agent in agents)


def _floor(rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        exec(compile(LINE, "<floor>", "exec"), {})  # noqa: S102 - a line of ours
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def _at_once(count: int) -> float:
    agent = Agent(model=ScriptedModel(lambda _messages: "```python\ntask_success(n)\n```"))

    @agent.task
    async def answer(n: int) -> int:
        """Answer."""

    async def all_of_them() -> None:
        await asyncio.gather(*(answer(n) for n in range(count)))

    start = time.perf_counter()
    asyncio.run(all_of_them())
    return (time.perf_counter() - start) * 1e3 / count


def _returned(rounds: int) -> float:
    native: dict[str, Any] = {}
    exec(BODY, native)  # noqa: S102 - a function of ours
    agent = Agent(model=ScriptedModel([[python_action(f"{BODY}\ntask_success(count)")]]))

    @agent.task
    def make() -> Callable[[int], int]:
        """Make it."""

    made = make()
    ratios = []
    for _ in range(rounds):
        ours, floor = _seconds(made), _seconds(native["count"])
        ratios.append(ours / floor)
    return statistics.median(ratios)


def _seconds(function: Callable[[int], int]) -> float:
    start = time.perf_counter()
    function(20_000)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
