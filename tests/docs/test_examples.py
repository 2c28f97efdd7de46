"""The example programs, with a script in the model's place."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from agex.agent import Agent
from agex.errors import IsolationUnavailable
from agex.isolation import levels
from agex.testing import ScriptedModel, python_action
from agex.tinyagent import TinyCodeAgent

EXAMPLES = Path(__file__).parents[2] / "examples"

PRIMES = """
def make_function(description: str) -> Callable[[int], int]:
    def find(n):
        n = max(n + 1, 2)
        while any(n % d == 0 for d in range(2, math.isqrt(n) + 1)):
            n += 1
        return n
    return find
"""
BUSIEST = """
def busiest(sales: DataFrame, count: int) -> dict[str, int]:
    return sales.groupby("region")["units"].sum().nlargest(count).to_dict()
"""

MEAN = """
import pandas as pd
final_answer(pd.read_csv("data.csv")["value"].mean())
"""

SCRIPTS = {
    "funcy.py": ("import math" + PRIMES, "101\n[3, 7, 14, 24]\n"),
    "frames.py": (BUSIEST, "{'east': 250, 'north': 190}\n1 turns, "),
    "tinyagent_local.py": (MEAN, "13.5\n1 steps, "),
    "tinyagent_isolated.py": ("final_answer(calculate(5, 3))", "8\n"),
    "tinyagent_sandboxed.py": ("final_answer(168)", "not run: TrustLevel.SANDBOXED does not hold here"),
}


def no_daemon():
    """Stand for a machine without containers."""
    raise IsolationUnavailable("no daemon")


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_runs(name, monkeypatch, capsys):
    pytest.importorskip("pandas", reason="the extra `test` has pandas")
    code, printed = SCRIPTS[name]
    model = ScriptedModel([[python_action(code)]])
    for kind in (Agent, TinyCodeAgent):
        monkeypatch.setattr(kind, "resolved_model", lambda self: model)
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.setitem(levels._MAKERS, "container", no_daemon)
    monkeypatch.delitem(levels._made, "container", raising=False)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert capsys.readouterr().out.startswith(printed)
