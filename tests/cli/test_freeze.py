"""``agex freeze``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from agex.cli.app import app

TASKS = '''
from agex import Agent
from agex.testing import ScriptedModel

code = "```python\\ndef double(n):\\n    return n * 2\\n```"
agent = Agent(model=ScriptedModel([code]))

@agent.task(reuse=True)
def double(n: int) -> int:
    """Double it."""
'''


@pytest.fixture
def agex(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"frozen_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(TASKS)
    monkeypatch.syspath_prepend(str(tmp_path))

    def call(*args: str, code: int = 0):
        done = CliRunner().invoke(app, [arg.replace("TASKS", name) for arg in args])
        assert done.exit_code == code, done.output
        return done.output

    return call


def test_a_solved_task_is_written_with_its_tests(agex, tmp_path):
    agex("run", "TASKS:double", "--arg", "n=3", "--state", "s", "--json")
    made = json.loads(agex("freeze", "TASKS:double", "--state", "s", "--out", "doubling.py", "--json"))
    assert made == {"module": "doubling.py", "tests": "test_doubling.py"}
    assert "def double(n: int) -> int:\n" in (tmp_path / "doubling.py").read_text()
    assert "assert double(n=3) == 6\n" in (tmp_path / "test_doubling.py").read_text()
    again = agex("freeze", "TASKS:double", "--state", "s", "--out", "doubling.py", code=2)
    assert "would be overwritten" in again
    agex("freeze", "TASKS:double", "--state", "s", "--out", "doubling.py", "--overwrite")


def test_a_state_without_a_solution_is_an_error(agex, tmp_path):
    agex("run", "TASKS:double", "--arg", "n=3", "--state", "s", "--json")
    said = agex("freeze", "TASKS:double", "--state", "s", "--out", "missing/x.py", code=2)
    assert "there is no folder" in said
    assert agex("freeze", "TASKS:agent", "--state", "s", "--out", "x.py", code=2).endswith(
        "with @agent.task\n"
    )
