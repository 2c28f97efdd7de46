"""Processes that are killed in the middle of a run: each call to the world was made once, or is in doubt."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.state.lost_workers import descendants
from queued import PAY, World, paying
from servers import postgres_server, redis_server

from agex import Agent, Memory, Versioned
from agex.testing import ScriptedModel

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["disk", "postgresql", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    if request.param == "disk":
        yield []
        return
    if request.param == "redis":
        with redis_server() as url:
            yield ["--redis", url]
        return
    with postgres_server() as dsn:
        yield ["--dsn", dsn]


def test_three_workers_of_one_store_make_each_call_once_or_it_is_in_doubt(store: list[str]) -> None:
    command = [sys.executable, "-m", "bench.state.lost_workers", "--runs", "6", "--workers", "3", *store]
    # Of a worker with guest code elsewhere, one process of those is killed as often as itself.
    chances = [
        "--isolation",
        "none" if store else "process",
        "--patience",
        "4",
        "--pause",
        "0.05",
        "--limit",
        "120",
    ]
    done = subprocess.run([*command, *chances], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["once"] + found["in doubt"] == 18


def is_workers(pid: int) -> bool:
    """Return whether a process is one for guest code, and no server that other tests use."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:3] == [b"-I", b"-"]
    except (FileNotFoundError, ProcessLookupError):
        return False


class Killer:
    """Kills processes once, from a thread of its own, when it is asked to.

    Args:
        parents: whether it kills those that start the processes of guest code, which end with them.
    """

    def __init__(self, *, parents: bool = False) -> None:
        self.killed: list[int] = []
        self._parents = parents
        self._reached, self._gone = threading.Event(), threading.Event()
        threading.Thread(target=self._kill, daemon=True).start()

    def __call__(self) -> None:
        if not self._gone.is_set():
            self._reached.set()
            assert self._gone.wait(20)

    def _kill(self) -> None:
        self._reached.wait(60)
        for pid in descendants(os.getpid()):
            if is_workers(pid) and bool(descendants(pid)) is self._parents:
                with contextlib.suppress(ProcessLookupError):
                    process = os.pidfd_open(pid)
                    os.kill(pid, signal.SIGKILL)
                    select.select([process], [], [], 20)  # it ends a moment later
                    os.close(process)
                    self.killed.append(pid)
        self._gone.set()


@pytest.mark.parametrize("parents", [False, True], ids=["the worker", "what forked it"])
def test_an_action_whose_process_was_killed_is_run_again_with_the_results_of_its_calls(parents: bool) -> None:
    world, kill = World(), Killer(parents=parents)
    world.during = lambda name: kill() if name == "b" else None
    pay = paying(world, [PAY], isolation="process")  # the model is asked once
    run = pay.run(7, state=Versioned(Memory()))
    assert kill.killed
    assert run.value == ["a is paid", "b is paid"]
    assert world.made == ["7 a", "7 b"]


OWN = "```python\nfirst = charge(number, 'a')\ndef pay(number: int) -> list[str]:\n    {body}\n```"


@pytest.mark.parametrize(
    ("body", "moment"),
    [
        ("leave()\n    return [first, charge(number, 'b')]", "before"),
        ("second = charge(number, 'b')\n    leave()\n    return [first, second]", "after"),
        ("return [first, charge(number, 'b')]", "accepted"),
    ],
)
def test_the_tasks_own_function_is_called_again_where_its_process_was_killed(body: str, moment: str) -> None:
    world, kill = World(), Killer()
    checks = [lambda value, inputs: kill()] if moment == "accepted" else []
    answers = [OWN.format(body=body)]
    pay = paying(world, answers, isolation="process", leave=kill, checks=checks)
    run = pay.run(7, state=Versioned(Memory()))
    assert kill.killed
    assert run.value == ["a is paid", "b is paid"]
    assert world.made == ["7 a", "7 b"]


def test_setup_code_whose_process_was_killed_is_run_again() -> None:
    kill = Killer()
    agent = Agent(model=ScriptedModel(["```python\ntask_success(rate)\n```"]), isolation="process", fs=None)
    agent.fn(kill, name="leave")

    @agent.task(setup="leave()\nrate = 3")
    def work() -> int:
        """Work."""

    assert work() == 3
    assert kill.killed


def killed_between_two_actions(kill: Killer, state: Versioned | None) -> tuple[int, str]:
    def answer(messages: object) -> str:
        kill()
        return "```python\ntask_success(kept + 1)\n```"

    answers = ["```python\nkept = 41\n```", answer, "```python\ntask_success(0)\n```"]
    agent = Agent(model=ScriptedModel(answers), isolation="process", fs=None, state=state)

    @agent.task
    def work() -> int:
        """Work."""

    value = work()
    assert kill.killed
    return value, str(agent.model.requests[-1])


def test_a_process_that_was_killed_while_the_model_was_asked_is_not_missed() -> None:
    value, _ = killed_between_two_actions(Killer(), Versioned(Memory()))
    assert value == 42


def test_without_a_state_the_model_is_told_that_its_variables_are_gone() -> None:
    value, told = killed_between_two_actions(Killer(), None)
    assert value == 0
    assert "Nothing of this code was run." in told
    assert "killed by SIGKILL" in told
    assert "NameError" not in told


def test_an_action_whose_process_is_killed_twice_is_run_a_third_time() -> None:
    world, killers = World(), [Killer(), Killer(parents=True)]
    world.during = lambda name: killers.pop()() if name == "b" and killers else None
    run = paying(world, [PAY], isolation="process").run(7, state=Versioned(Memory()))
    assert run.value[0] == "a is paid"
    assert world.made[0] == "7 a"
    assert world.made.count("7 b") <= 1


def test_a_model_is_told_which_calls_were_made_by_code_that_was_lost_three_times() -> None:
    world, killers = World(), [Killer(), Killer(), Killer()]

    def leave() -> None:
        if killers:
            killers.pop(0)()

    code = "```python\ncharge(number, 'a')\nleave()\n```"
    pay = paying(world, [code, "```python\ntask_success(['told'])\n```"], isolation="process", leave=leave)
    assert pay.run(7, state=Versioned(Memory())).value == ["told"]
    assert "Calls that were made before, and are not undone: charge(7, 'a')." in str(
        pay.agent.model.requests[1]
    )
    assert world.made == ["7 a"]
