import ast
import doctest
import inspect
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench.tables.__main__ import tried
from bench.tables.problem import HIDDEN_SEED, PUBLIC_SEED, difference
from bench.tables.problems import FAMILIES, PROBLEMS
from bench.tables.sides import Settings, bare_prompt

from agex import Agent
from agex.agent.call.terms import Inputs
from agex.models import ModelError
from agex.testing import ScriptedModel

families = pytest.mark.parametrize("family", list(FAMILIES))
BY_NAME = {problem.name: problem for problem in PROBLEMS}

MISSING_DAYS = """\
import pandas as pd

def missing_days(days: list[str]) -> list[str]:
    span = pd.date_range(min(days), max(days)).strftime("%Y-%m-%d")
    return [day for day in span if day not in days]
"""
UNDONE = "def missing_days(days):\n    return []\n"


def _try(name, side, *answers, turns=2):
    """Try a problem with a model that answers with programs."""
    model = ScriptedModel([f"```python\n{each}\n```" for each in answers])
    return tried(BY_NAME[name], Settings(side, model, turns=turns)), model


# -- the problems


def test_there_are_sixty_problems_of_ten_families_with_names_of_their_own():
    assert len(PROBLEMS) == len(BY_NAME) == 60
    assert {len(family) for family in FAMILIES.values()} == {6}


@families
def test_a_reference_passes_the_judge_and_the_public_checks(family):
    for problem in FAMILIES[family]:
        for seed in (PUBLIC_SEED, HIDDEN_SEED):
            value = problem.reference(**problem.make(seed))
            assert problem.judge(value, seed) is None, problem.name
            for check in problem.checks:
                assert check(value, Inputs(problem.make(seed))) is None, problem.name


@families
def test_a_plausible_solution_that_is_wrong_is_rejected(family):
    wrong = [(problem, each) for problem in FAMILIES[family] for each in problem.wrong]
    assert len(wrong) >= 2
    for problem, solution in wrong:
        assert problem.judge(solution(**problem.make(HIDDEN_SEED))) is not None, problem.name


@families
def test_a_value_for_other_data_is_rejected(family):
    for problem in FAMILIES[family]:
        assert problem.judge(problem.reference(**problem.make(PUBLIC_SEED))) is not None, problem.name


@families
def test_the_examples_of_a_docstring_hold(family):
    for problem in FAMILIES[family]:
        for each in doctest.DocTestFinder().find(
            problem.reference, problem.name, globs=problem.reference.__globals__
        ):
            assert doctest.DocTestRunner().run(each, out=lambda text: None).failed == 0, problem.name


@families
def test_a_declaration_is_a_task_that_shows_nothing_of_the_solution(family):
    for problem in FAMILIES[family]:
        task = Agent(model=ScriptedModel([])).task(checks=problem.checks)(problem.declaration())
        signature = task.definition.terms.signature
        assert signature.doc == inspect.cleandoc(problem.reference.__doc__)
        assert list(signature.parameters) == list(problem.make(PUBLIC_SEED))
        (function,) = ast.parse(problem.source).body
        assert [type(each) for each in function.body] == [ast.Expr]


def _program(problem):
    """Return the reference with what its module has for it, as a program of guest code."""
    tree = ast.parse(inspect.getsource(sys.modules[problem.reference.__module__]))
    kept = [node for node in tree.body if _is_part(node, problem.name)]
    for node in kept:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list, node.returns = [], None
            for each in node.args.args:
                each.annotation = None
    names = ", ".join(f"{name}={name}" for name in problem.make(PUBLIC_SEED))
    return "\n".join(map(ast.unparse, kept)) + f"\ntask_success({problem.name}({names}))"


def _is_part(node, name):
    if isinstance(node, ast.ImportFrom):
        return node.module.split(".")[0] not in ("__future__", "agex", "bench")
    if isinstance(node, ast.FunctionDef):
        is_generator = any(isinstance(each, ast.Name) and each.id == "Mess" for each in ast.walk(node))
        return node.name == name or not (node.decorator_list or is_generator)
    named = [each.id for each in getattr(node, "targets", [])]
    return not isinstance(node, ast.AnnAssign) and not {"PROBLEMS", "problem", "__all__"} & {*named}


@families
def test_a_reference_can_be_written_in_the_sandbox(family):
    problem = FAMILIES[family][0]  # the others were tried once by hand: each takes a quarter of a second
    row, _ = _try(problem.name, "product", _program(problem), turns=1)
    assert row["passed"], row["reason"]


# -- the judge


def test_the_order_of_columns_and_rows_and_the_dtypes_do_not_count():
    expected = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    value = pd.DataFrame({"b": [np.nan, "x"], "a": [2.0, 1.0]}, index=[7, 3])
    assert difference(value, expected) is None
    assert difference(value, expected, ordered=True) is not None


@pytest.mark.parametrize(
    "value",
    [
        pd.DataFrame({"a": [1, 3]}),
        pd.DataFrame({"a": [1]}),
        pd.DataFrame({"b": [1, 2]}),
        pd.DataFrame({"a": ["1", "2"]}),
        pd.DataFrame({"a": [True, 2]}),
        pd.Series([1, 2], name="a"),
        None,
    ],
    ids=["a cell", "a row less", "a column", "texts", "a bool", "a series", "nothing"],
)
def test_another_frame_differs(value):
    assert difference(value, pd.DataFrame({"a": [1, 2]})) is not None


def test_values_within_lists_and_dicts_are_compared():
    assert difference({"a": np.int64(1), "b": [0.1 + 0.2]}, {"a": 1, "b": [0.3]}) is None
    assert difference({"a": 1}, {"a": 1, "b": 2}) is not None
    assert difference([1, 2], [2, 1]) is not None


def test_a_class_that_equals_everything_differs():
    class Anything(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__

    assert difference(Anything(1), 1) is not None
    assert difference({Anything(1): 1}, {1: 1}) is not None
    assert difference(pd.DataFrame({"a": pd.Series([Anything(1)], dtype=object)}), pd.DataFrame({"a": [1]}))


# -- the sides


@pytest.mark.parametrize("side", ["bare", "product"])
def test_a_right_answer_passes_on_either_side(side):
    row, _ = _try("missing_days", side, MISSING_DAYS)
    assert (row["passed"], row["accepted"], row["confident_wrong"], row["turns"]) == (True, True, False, 1)
    assert row["output_tokens"] > 0
    assert "date_range" in row["code"]


def test_what_the_bare_models_function_returns_is_a_confident_wrong_answer_where_it_is_wrong():
    row, _ = _try("missing_days", "bare", UNDONE)
    assert (row["passed"], row["accepted"], row["confident_wrong"]) == (False, True, True)
    assert row["reason"].startswith("the judge '_right': a list of")


@pytest.mark.parametrize(
    "answer", ["def missing_days(days):\n    return days[1000]\n", "def other():\n    pass\n", "1 +"]
)
def test_a_bare_answer_that_fails_has_no_value(answer):
    row, model = _try("missing_days", "bare", answer)
    assert (row["passed"], row["accepted"], row["confident_wrong"]) == (False, False, False)
    assert row["input_tokens"] > 0
    assert len(model.requests) == 1


def test_a_bare_answer_may_show_itself_off():
    row, _ = _try(
        "missing_days", "bare", f"{MISSING_DAYS}\ndays = open('days.txt').read()\nprint(missing_days(days))"
    )
    assert row["passed"]


def test_the_product_corrects_what_the_examples_refuse():
    wrong = "task_success(sorted(days))"
    row, _ = _try("missing_days", "product", wrong, MISSING_DAYS)
    assert (row["passed"], row["turns"]) == (True, 2)


def test_what_the_product_refuses_is_no_confident_answer():
    row, _ = _try("missing_days", "product", "task_success(days)", "task_success(days)")
    assert (row["passed"], row["accepted"], row["confident_wrong"]) == (False, False, False)


def test_what_the_product_accepts_is_a_confident_wrong_answer_where_it_is_wrong():
    row, _ = _try("match_counts", "product", "task_success({'matched': 1, 'unmatched': 2, 'idle': 3})")
    assert (row["passed"], row["confident_wrong"]) == (False, True)


def test_three_samples_are_asked_for():
    row, model = _try("missing_days", "samples", *[MISSING_DAYS] * 3)
    assert row["passed"]
    assert 1 <= len(model.requests) <= 3


def test_the_stronger_model_is_asked_where_the_first_fails():
    weak = ScriptedModel(["```python\ntask_success(1)\n```"] * 2)
    strong = ScriptedModel([f"```python\n{MISSING_DAYS}\n```"])
    row = tried(BY_NAME["missing_days"], Settings("escalation", weak, turns=4, strong=strong))
    assert (row["passed"], row["requests"]) == (True, 3)


def test_a_model_that_cannot_be_asked_ends_the_benchmark():
    model = ScriptedModel([ModelError("no network", retryable=False)])
    with pytest.raises(Exception, match="no network"):
        tried(BY_NAME["missing_days"], Settings("bare", model, turns=1))


def test_an_error_of_the_judge_ends_the_benchmark():
    def broken(days: list[str]) -> list[str]:
        """Break."""
        raise KeyError(days[0])

    problem = replace(BY_NAME["missing_days"], reference=broken)
    model = ScriptedModel(["```python\ntask_success([])\n```"])
    with pytest.raises(KeyError):
        tried(problem, Settings("product", model, turns=1))


def test_an_error_of_a_check_is_a_result():
    def broken(value, inputs):
        return {}[0]

    problem = replace(BY_NAME["missing_days"], checks=(broken,))
    model = ScriptedModel(["```python\ntask_success([])\n```"])
    row = tried(problem, Settings("product", model, turns=1))
    assert (row["passed"], row["accepted"]) == (False, False)
    assert row["reason"].startswith("CheckError: the check broken raised KeyError")


def test_the_bare_model_is_told_of_the_data_and_not_of_the_solution():
    problem = BY_NAME["orders_with_names"]
    prompt = bare_prompt(problem, problem.make(HIDDEN_SEED))
    assert "def orders_with_names(orders: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:" in prompt
    assert "40 rows x 3 columns" in prompt
    assert "merge" not in prompt
