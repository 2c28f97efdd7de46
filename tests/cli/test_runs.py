"""``agex runs`` and ``agex resume``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from agex.cli.app import app

TASKS = '''
from agex import Agent
from agex.testing import ScriptedModel

def code(text):
    return f"```python\\n{text}\\n```"

agent = Agent(model=ScriptedModel([code("task_success(pay(n))"), code("task_success('gave up')")]))

@agent.fn(external=True, approval=True)
def pay(n: int) -> str:
    """Pay."""
    with open("paid.txt", "a") as file:
        file.write(f"{n}\\n")
    return f"{n} paid"

@agent.task
def settle(n: int) -> str:
    """Settle."""

asker = Agent(model=ScriptedModel([code("task_clarify('which?')"), code("task_success('so')")]))

@asker.task
async def ask() -> str:
    """Ask."""
'''


@pytest.fixture
def agex(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"tasks_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(
        TASKS.replace("external=True, approval", "external=True, host_fs_access=True, approval")
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def call(*args: str, code: int = 0):
        done = CliRunner().invoke(app, [arg.replace("TASKS", name) for arg in args])
        assert done.exit_code == code, done.output
        return done.output

    return call


def test_a_suspended_run_is_listed_and_goes_on_once_it_is_approved(agex, tmp_path):
    agex("run", "TASKS:settle", "--arg", "n=3", "--state", "s", "--json", code=1)
    (entry,) = json.loads(agex("runs", "s", "--json"))
    assert (entry["task"], entry["status"], entry["call"]["text"]) == ("settle", "suspended", "pay(3)")
    assert "suspended  settle  turn 1" in agex("runs", "s")
    assert "pay(3)" in agex("resume", "s", entry["run"], "TASKS:settle", code=1)
    found = json.loads(agex("resume", "s", entry["run"], "TASKS:settle", "--approve", "--json"))
    assert found["value"] == "3 paid"
    assert (tmp_path / "paid.txt").read_text() == "3\n"
    assert json.loads(agex("runs", "s", "--json"))[0]["status"] == "done"


def test_a_run_is_replayed_without_its_payment_and_says_why(agex, tmp_path):
    agex("run", "TASKS:settle", "--arg", "n=3", "--state", "s", "--json", code=1)
    (entry,) = json.loads(agex("runs", "s", "--json"))
    agex("resume", "s", entry["run"], "TASKS:settle", "--approve", "--json")
    assert "the same" in agex("replay", "s", entry["run"], "TASKS:settle")
    (tmp_path / "paid.txt").unlink()
    assert json.loads(agex("replay", "s", entry["run"], "TASKS:settle", "--json"))["same"] is True
    assert not (tmp_path / "paid.txt").exists()
    trace = json.loads(agex("why", "s", entry["run"], "--json"))
    assert (trace["inputs"], trace["value"]) == ({"n": "3"}, "'3 paid'")
    shown = agex("why", "s", entry["run"])
    assert "1  task_success(pay(n))" in shown
    assert "call  pay(3) -> '3 paid'" in shown


def test_a_replay_asks_no_model(agex, tmp_path):
    agex("run", "TASKS:settle", "--arg", "n=3", "--state", "s", "--json", code=1)
    (entry,) = json.loads(agex("runs", "s", "--json"))
    agex("resume", "s", entry["run"], "TASKS:settle", "--reject", "no")
    (name,) = (path for path in tmp_path.glob("tasks_*.py"))
    name.write_text(name.read_text().replace("'gave up'", "'other'"))
    assert "the same" in agex("replay", "s", entry["run"], "TASKS:settle")  # the recorded answers are asked


def test_a_rejected_call_is_not_made(agex, tmp_path):
    agex("run", "TASKS:settle", "--arg", "n=3", "--state", "s", "--json", code=1)
    (entry,) = json.loads(agex("runs", "s", "--json"))
    found = agex("resume", "s", entry["run"], "TASKS:settle", "--reject", "too much")
    assert "gave up" in found
    assert not (tmp_path / "paid.txt").exists()


def test_a_question_is_answered(agex):
    agex("run", "TASKS:ask", "--state", "s", code=1)
    (entry,) = json.loads(agex("runs", "s", "--json"))
    assert (entry["status"], entry["question"]) == ("asking", "which?")
    agex("resume", "s", entry["run"], "TASKS:ask", "--approve", code=2)
    assert (
        json.loads(agex("resume", "s", entry["run"], "TASKS:ask", "--answer", "that", "--json"))["value"]
        == "so"
    )


def test_what_cannot_be_resumed_is_said(agex):
    agex("run", "TASKS:settle", "--arg", "n=3", "--state", "s", "--json", code=1)
    assert "There is no run 'x'" in agex("resume", "s", "x", "TASKS:settle", code=2)
    (entry,) = json.loads(agex("runs", "s", "--json"))
    assert "one of task 'settle'" in agex("resume", "s", entry["run"], "TASKS:ask", code=2)
    assert "one of" in agex("resume", "s", entry["run"], "TASKS:settle", "--approve", "--answer", "x", code=2)
