"""``agex worker``: what it opens, what it says, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agex import Disk, Versioned, runs
from agex.cli.app import app
from agex.durable import enqueue

TASKS = '''
import sys, threading
from agex import Agent, Disk, Versioned
from agex.durable import enqueue
from agex.testing import ScriptedModel

def answer(messages):
    if sys.argv[-1] == "waiting":
        print("asked", flush=True)
        threading.Event().wait(60)
    return "```python\\ntask_success(n * 2)\\n```"

agent = Agent(model=ScriptedModel(answer), fs=None)

@agent.task
def double(n: int) -> int:
    """Double."""

def put(directory, count):
    store = Disk(directory)
    for n in range(count):
        enqueue(double.using(state=Versioned(store, branch=f"run-{n}", create=True)), n)
    store.close()
'''


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"worker_tasks_{os.getpid()}"
    (tmp_path / f"{name}.py").write_text(TASKS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def statuses(directory: str) -> list[str]:
    store = Disk(directory)
    found = [
        one.status for branch in store.journal().branches() for one in runs(Versioned(store, branch=branch))
    ]
    store.close()
    return found


def test_it_carries_out_what_is_open_and_ends(tasks: str) -> None:
    __import__(tasks).put("orders", 3)
    done = CliRunner().invoke(
        app, ["worker", tasks, "--state", "orders", "--once", "--json", "--poll", "0.05"]
    )
    assert done.exit_code == 0, done.output
    reports = [json.loads(line) for line in done.output.splitlines()]
    assert [(one["what"], one["task"]) for one in reports] == [("done", "double")] * 3
    assert statuses("orders") == ["done"] * 3


def test_a_typing_mistake_makes_no_store_and_no_worker(tasks: str) -> None:
    run = CliRunner()
    assert run.invoke(app, ["worker", tasks, "--state", "ordres", "--once"]).exit_code == 2
    assert run.invoke(app, ["worker", tasks, "--state", "mysql://x", "--once"]).exit_code == 2
    __import__(tasks).put("orders", 1)
    for module in ("no_such_module", "json"):
        found = run.invoke(app, ["worker", module, "--state", "orders", "--once"])
        assert found.exit_code == 2
        assert module in found.output
    assert run.invoke(app, ["worker", tasks, "--state", "orders", "--attempts", "0"]).exit_code == 2
    bad = run.invoke(app, ["worker", tasks, "--state", "orders", "--lease", "0"])
    assert bad.exit_code == 2
    assert "lease=" in bad.output
    assert not Path("ordres").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_the_run_open_for_the_next(tasks: str, number: signal.Signals) -> None:
    __import__(tasks).put("orders", 1)
    code = "import sys; from agex.cli.app import app; app(sys.argv[1:-1])"
    command = [sys.executable, "-c", code, "worker", tasks, "--state", "orders", "waiting"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "asked\n"
        worker.send_signal(number)
        said, _ = worker.communicate(timeout=20)
    assert worker.returncode == 0
    assert said.startswith("released")
    assert statuses("orders") == ["open"]
    done = CliRunner().invoke(app, ["worker", tasks, "--state", "orders", "--once", "--poll", "0.05"])
    assert done.output.startswith("done")


DEADLY = r'''
import os, signal, threading
from agex import Agent
from agex.testing import ScriptedModel

over = threading.Event()

def kill():
    over.wait()
    os.kill(os.getpid(), signal.SIGKILL)

thread = threading.Thread(target=kill, daemon=True)
thread.start()

def answer(messages):
    return "```python\nleave()\n```"

agent = Agent(model=ScriptedModel(answer), fs=None)

@agent.fn
def leave() -> None:
    if os.environ.get("AGEX_TEST_DEADLY"):
        over.set()
        thread.join()

@agent.task
def pay() -> str:
    """Pay."""
'''


def test_a_run_that_takes_each_of_its_workers_with_it_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = f"deadly_tasks_{os.getpid()}"
    Path(f"{name}.py").write_text(DEADLY, encoding="utf-8")
    module = __import__(name)
    store = Disk("orders")
    run_id = enqueue(module.pay.using(state=Versioned(store)))
    store.close()
    options = ["worker", name, "--state", "orders", "--once", "--lease", "0.3", "--poll", "0.02"]
    options += ["--attempts", "2"]
    code = "import sys; from agex.cli.app import app; app(sys.argv[1:])"
    deadly = {**os.environ, "AGEX_TEST_DEADLY": "1"}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code, *options], env=deadly, check=False)
        assert done.returncode == -signal.SIGKILL
    found = CliRunner().invoke(app, options)
    assert found.exit_code == 1
    assert found.output.startswith("failed")
    assert CliRunner().invoke(app, options).output == ""
    listed = CliRunner().invoke(app, ["runs", "orders"]).output
    assert f"{run_id}  failed" in listed
    assert "was lost 2 times at the same place" in listed
    sys.modules.pop(name)
