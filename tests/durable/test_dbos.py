"""A task as a workflow of the real DBOS: recovered, it asks no model and makes no call again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import postgres_server

from agex import Agent, DefinitionError, Live
from agex.testing import ScriptedModel

pytest.importorskip("dbos", reason="needs `pip install dbos`")

from agex.durable.dbos import workflow

PROGRAM = Path(__file__).with_name("workflow_program.py")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/steps.sqlite"
        return
    with postgres_server() as dsn:
        port = dsn.partition("port=")[2].split()[0]
        yield f"postgresql://agex@127.0.0.1:{port}/workflows"


def begun(url: str, world: Path, kill_at: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), url, str(world), kill_at, "7"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_workflow_that_was_killed_goes_on_with_its_steps(url: str, tmp_path: Path) -> None:
    world = tmp_path / "world"
    for kill_at in ("made b", "asked again"):
        assert begun(url, world, kill_at).returncode == -9
    done = begun(url, world, "nowhere")
    assert done.stdout.splitlines() == ["['a is paid', 'b: CallInDoubt', 'c is paid']"], done.stderr
    lines = world.read_text().splitlines()
    assert lines.count("asked first") == 1  # its answer is a step
    assert [line for line in lines if line.startswith("made")] == ["made a", "made b", "made c"]
    again = begun(url, world, "nowhere")
    assert again.stdout == done.stdout
    assert world.read_text().splitlines() == lines


def test_what_dbos_could_not_keep_is_refused() -> None:
    agent = Agent(model=ScriptedModel([]), fs=None)

    @agent.task
    async def later() -> int:
        """Later."""

    @agent.task
    def soon() -> int:
        """Soon."""

    with pytest.raises(DefinitionError, match="no task of a def"):
        workflow(later)
    with pytest.raises(DefinitionError, match="state=None"):
        workflow(soon.using(state=Live()))
    with pytest.raises(DefinitionError, match="no samples"):
        workflow(soon.using(samples=2))
