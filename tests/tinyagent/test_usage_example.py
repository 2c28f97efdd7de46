"""The documentation's usage example, as it stands there but for the import line."""

from __future__ import annotations

import pytest

from agex.testing import ScriptedModel
from agex.tinyagent import TinyCodeAgent

EXAMPLE = """\
from agex.tinyagent import TinyCodeAgent, TrustLevel, ExecutionLimits

agent = TinyCodeAgent(
    model="gpt-4o",
    trust_level=TrustLevel.ISOLATED,
    limits=ExecutionLimits(
        timeout_seconds=60.0,
        max_output_bytes=50000
    ),
    extra_imports=["pandas", "numpy"]
)

result = agent.run_sync(
    "Read data.csv, calculate the mean of column 'value', "
    "and return the result"
)
print(result)
"""
NUMPY = """
import numpy as np
data = np.genfromtxt('data.csv', delimiter=',', skip_header=1)
print(data)
"""
CSV = """
import csv
with open('data.csv', newline='') as file:
    values = [float(row['value']) for row in csv.DictReader(file)]
"""
REPLIES = {
    "pandas": ["```python\nimport pandas as pd\nfinal_answer(pd.read_csv('data.csv')['value'].mean())\n```"],
    "numpy": [f"```python{NUMPY}```", "```python\nfinal_answer(data[:, 1].mean())\n```"],
    "csv": [f"```python{CSV}```", "```python\nfinal_answer(sum(values) / len(values))\n```"],
}


@pytest.fixture(autouse=True)
def _csv(tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text("id,value\n1,10\n2,20\n3,31.5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def printed(source, replies, monkeypatch, capsys):
    model = ScriptedModel(replies)
    monkeypatch.setattr(TinyCodeAgent, "resolved_model", lambda self: model)
    exec(compile(source, "example", "exec", dont_inherit=True), {"__name__": "example"})
    return capsys.readouterr().out


@pytest.mark.parametrize("way", REPLIES)
def test_the_usage_example_runs_in_this_process(way, monkeypatch, capsys):
    pytest.importorskip("pandas", reason="the extra `test` has pandas")
    source = EXAMPLE.replace("ISOLATED", "LOCAL")
    assert printed(source, REPLIES[way], monkeypatch, capsys) == "20.5\n"


@pytest.mark.parametrize("way", REPLIES)
def test_the_usage_example_runs_verbatim(way, monkeypatch, capsys):
    pytest.importorskip("pandas", reason="the extra `test` has pandas")
    assert printed(EXAMPLE, REPLIES[way], monkeypatch, capsys) == "20.5\n"
