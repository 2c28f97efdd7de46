from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agex.agent import Agent, Budget
from agex.errors import DefinitionError, IsolationUnavailable, ModelNotConfigured, WeightsCorrupt
from agex.state import Live
from agex.testing import ScriptedModel


def task_of(agent):
    @agent.task
    def f() -> int: ...

    return f


def test_an_isolation_level_that_does_not_hold_is_refused_at_construction(monkeypatch):
    monkeypatch.setattr("agex.isolation.lockdown.landlock.abi", lambda: 0)
    monkeypatch.setattr("agex.isolation.levels._made", {})
    with pytest.raises(IsolationUnavailable, match="kernel"):
        Agent(isolation="kernel")


@pytest.mark.parametrize(
    "settings",
    [
        {"isolation": "moon"},
        {"fs": "virtual"},
        {"state": {}},
        {"budget": 5},
        {"max_iterations": 0},
        {"timeout_seconds": 0},
        {"max_output_chars": 10},
        {"llm_retries": -1},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_setting_that_cannot_work_is_refused_at_construction(settings):
    with pytest.raises(DefinitionError, match=next(iter(settings))):
        Agent(**settings)


def test_settings_that_work_are_kept():
    state, budget = Live(), Budget(calls=1)
    agent = Agent(name="n", primer="p", state=state, fs=None, budget=budget, max_memory_mb=100)
    assert (agent.name, agent.primer, agent.state, agent.budget) == ("n", "p", state, budget)


def test_two_agents_may_bear_one_name():
    model = ScriptedModel(lambda messages: "```python\ntask_success(1)\n```")
    assert [task_of(Agent(name="same", model=model))() for _ in range(2)] == [1, 1]


def test_a_model_is_looked_up_at_the_first_call_only():
    agent = Agent(model="no such model at all")
    task = task_of(agent)
    with pytest.raises(ModelNotConfigured):
        task()


def test_without_any_model_the_first_call_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("AGEX_CACHE_DIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelNotConfigured, match="AGEX_MODEL"):
        task_of(Agent())()


def test_a_weights_file_that_is_none_is_refused(tmp_path: Path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    with pytest.raises(WeightsCorrupt, match=r"broken\.gguf"):
        task_of(Agent(model=f"local:{broken}"))()


def test_importing_agents_loads_no_provider_and_no_numbers():
    code = (
        "import sys, agex.agent; "
        "heavy = {'pydantic_ai', 'openai', 'numpy', 'pandas', 'rich', 'xllamacpp'}; "
        "print(sorted(heavy & sys.modules.keys()))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
