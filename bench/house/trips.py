"""The command: ``python -m bench.house.trips``, from the root of the repository.

A trip is one call of the product, warm, followed with ``sys.setprofile``. Three figures say how far a reader
goes who follows it: the modules below ``agex`` that it enters, the changes from one module to another, and
the calls. What a thread of this process does for the trip is counted as well, a worker process is not.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd

import agex
from agex import Agent
from agex.errors import IsolationUnavailable
from agex.sandbox import Sandbox
from agex.testing import ScriptedModel, python_action

PACKAGE = Path(agex.__file__).parent
WARM = 3
"""Calls before the one that is followed: the first loads modules and fills caches."""


class Trip:
    """The modules that one call enters, in order."""

    def __init__(self) -> None:
        self.entered: list[str] = []

    def follow(self, call: Callable[[], object]) -> None:
        """Make the call and note each call of a function below the package."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and (path := Path(frame.f_code.co_filename)).is_relative_to(PACKAGE):
            self.entered.append(".".join(path.relative_to(PACKAGE).with_suffix("").parts))

    @property
    def modules(self) -> list[str]:
        """The modules entered, each once, in the order of the first call."""
        return list(dict.fromkeys(self.entered))

    @property
    def changes(self) -> int:
        """How often one module calls another, or returns to call from it."""
        return sum(one != other for one, other in zip(self.entered, self.entered[1:], strict=False))


def exec_trip() -> Trip:
    """Follow one run of a program in a fresh namespace."""
    sandbox = Sandbox()
    return _followed(lambda: sandbox.exec("x = 1\nx + 1"))


def task_trip() -> Trip:
    """Follow a task of one turn, in process."""
    agent = Agent()

    @agent.task
    def answer(n: int) -> int:
        """Answer."""

    return _task_followed(agent, lambda: answer(1), "task_success(1)")


def table_trip() -> Trip:
    """Follow the host's side of a task of one turn that takes a table, behind the walls of the kernel."""
    agent = Agent(isolation="kernel")
    agent.module(pd)
    table = pd.DataFrame({"a": [1, 2, 3]})

    @agent.task
    def answer(table: pd.DataFrame) -> int:
        """Answer."""

    return _task_followed(agent, lambda: answer(table), "task_success(len(table))")


TRIPS: dict[str, Callable[[], Trip]] = {
    'Sandbox.exec("x = 1\\nx + 1")': exec_trip,
    "a task of one turn, isolation none": task_trip,
    "a DataFrame into kernel, host side": table_trip,
}


def _followed(call: Callable[[], object]) -> Trip:
    for _ in range(WARM):
        call()
    trip = Trip()
    trip.follow(call)
    return trip


def _task_followed(agent: Agent, call: Callable[[], object], action: str) -> Trip:
    def scripted() -> None:
        agent.model = ScriptedModel([[python_action(action)]])
        call()

    return _followed(scripted)


def main() -> None:
    """Print the figures of each trip, and with ``--names`` its modules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="name the modules that each trip enters")
    names = parser.parse_args().names
    print(f"{'trip':<40}{'modules':>9}{'changes':>9}{'calls':>9}")
    for label, make in TRIPS.items():
        try:
            trip = make()
        except IsolationUnavailable as error:
            print(f"{label:<40}  unavailable: {error}")
            continue
        print(f"{label:<40}{len(trip.modules):>9}{trip.changes:>9}{len(trip.entered):>9}")
        if names:
            print("".join(f"    {module}\n" for module in trip.modules), end="")


if __name__ == "__main__":
    main()
