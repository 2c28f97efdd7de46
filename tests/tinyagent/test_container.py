"""Code at SANDBOXED, in containers of a service of podman's own."""

from __future__ import annotations

import runpy
from pathlib import Path

import podman
import pytest

from agex.isolation import executor_of, levels
from agex.testing import ScriptedModel
from agex.tinyagent import PythonExecutor, TinyCodeAgent, TrustLevel

pytestmark = [
    pytest.mark.skipif(bool(podman.missing()), reason=f"no container engine: {podman.missing()}"),
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # the Docker SDK's sockets
]

MEAN = "```python\nimport pandas as pd\nfinal_answer(pd.read_csv('data.csv')['value'].mean())\n```"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with podman.service(tmp_path_factory.mktemp("podman")) as found:
        yield found


@pytest.fixture(autouse=True)
def _here(address, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", address)
    monkeypatch.setattr(levels, "_made", {})
    (tmp_path / "data.csv").write_text("id,value\n1,10\n2,20\n3,31.5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield
    executor_of("container").close()


def test_the_usage_example_runs_in_a_container():
    agent = TinyCodeAgent(
        model=ScriptedModel([MEAN]), trust_level=TrustLevel.SANDBOXED, extra_imports=["pandas"]
    )
    result = agent.run_sync("Read data.csv and return the mean of column 'value'", return_result=True)
    assert (result.output, result.enforcement.isolation) == ("20.5", "container")


def test_nothing_is_written_from_a_container(tmp_path):
    executor = PythonExecutor(trust_level="sandboxed")
    result = executor.run("open('new.txt', 'w')")
    executor.close()
    assert "can be read here, not written" in result.error
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


def test_the_example_of_strangers_runs_in_a_container(capsys):
    examples = Path(__file__).parents[2] / "examples"
    script = (examples / "replies" / "tinyagent_sandboxed.md").read_text(encoding="utf-8")
    program = runpy.run_path(str(examples / "tinyagent_sandboxed.py"))
    program["main"](ScriptedModel([script]))
    assert capsys.readouterr().out == "168\n"
