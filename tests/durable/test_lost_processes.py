"""Processes that are killed in the middle of a run: each call to the world was made once, or is in doubt."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.state.lost_workers import descendants
from queued import PAY, World, paying
from servers import postgres_server

from agex import Memory, Versioned

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["disk", "postgresql"])
def store(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    if request.param == "disk":
        yield []
        return
    with postgres_server() as dsn:
        yield ["--dsn", dsn]


def test_three_workers_of_one_store_make_each_call_once_or_it_is_in_doubt(store: list[str]) -> None:
    command = [sys.executable, "-m", "bench.state.lost_workers", "--runs", "6", "--workers", "3", *store]
    chances = ["--isolation", "none", "--patience", "4", "--pause", "0.05", "--limit", "120"]
    done = subprocess.run([*command, *chances], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["once"] + found["in doubt"] == 18


def is_workers(pid: int) -> bool:
    """Return whether a process is one of agex, and not a server of stores that other tests use."""
    try:
        return b"agex" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_action_whose_process_was_killed_is_run_again_with_the_results_of_its_calls() -> None:
    world, reached, gone = World(), threading.Event(), threading.Event()

    def kill_guest() -> None:
        reached.wait(20)
        for pid in descendants(os.getpid()):
            if is_workers(pid) and not descendants(pid):  # not one that starts workers, but one of these
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        gone.set()

    def during(name: str) -> None:
        if name == "b" and not gone.is_set():
            reached.set()
            gone.wait(20)

    world.during = during
    thread = threading.Thread(target=kill_guest)
    thread.start()
    pay = paying(world, [PAY], isolation="process")  # the model is asked once
    state = Versioned(Memory())
    run = pay.run(7, state=state)
    thread.join()
    assert run.value == ["a is paid", "b is paid"]
    assert world.made == ["7 a", "7 b"]
