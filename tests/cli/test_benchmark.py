"""The file of a benchmark's results, its figures, and two files compared."""

from __future__ import annotations

import json

import pytest

from agex import DefinitionError
from agex.cli.benchmark import Results, compared, comparison_table, table

HEAD = {"benchmark": "tables", "model": "testing:scripted"}


def result(*, passed, accepted=True):
    return {
        "passed": passed,
        "accepted": accepted,
        "confident_wrong": accepted and not passed,
        "reason": "",
        "turns": 2,
        "requests": 2,
        "input_tokens": 1_000,
        "output_tokens": 10,
        "seconds": 1.5,
    }


def written(path, passed, head=HEAD, side="product"):
    """Write results of problems 0, 1, 2, ... as 1 for one that passes."""
    results = Results(head, path)
    for number, one in enumerate(passed):
        results.add(side, str(number), result(passed=bool(one)))
    return path


def test_results_are_in_the_file_after_each_and_go_on_from_there(tmp_path):
    path = tmp_path / "out.json"
    Results(HEAD, path).add("bare", "a", result(passed=True), family="joins")
    again = Results(HEAD, path)
    assert again.of("bare", "a") == result(passed=True)
    assert again.of("bare", "b") is None
    assert again.of("product", "a") is None
    again.add("bare", "b", result(passed=False), family="joins")
    document = json.loads(path.read_text())
    assert document == again.document()
    assert [row["task"] for row in document["problems"]] == ["a", "b"]
    assert document["sides"]["bare"]["families"] == {"joins": [1, 2]}
    assert "| bare | 1/2 | 9% to 91% | 1 | 4 | 2,000 / 20 | 3 |" in table(document)


def test_a_file_of_something_else_is_not_gone_on_with(tmp_path):
    path = written(tmp_path / "out.json", [1])
    with pytest.raises(DefinitionError, match="model = 'testing:scripted', not 'local:small'"):
        Results({**HEAD, "model": "local:small"}, path)
    assert json.loads(path.read_text())["sides"]["product"]["passed"] == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"problems": 1}'])
def test_a_file_that_has_no_results_is_refused(tmp_path, text):
    path = tmp_path / "out.json"
    path.write_text(text)
    with pytest.raises(DefinitionError, match="is not a file of results"):
        compared(path)


def test_an_answer_that_is_not_there_is_not_a_confident_wrong_one():
    results = Results(HEAD)
    results.add("product", "a", result(passed=False))
    results.add("product", "b", result(passed=False, accepted=False))
    assert results.document()["sides"]["product"]["confident_wrong"] == 1


def test_two_files_are_compared_on_the_problems_that_both_have(tmp_path):
    before = written(tmp_path / "before.json", [1, 1, 0, 0, 0, 0, 0, 0, 1, 1])
    after = written(tmp_path / "after.json", [0, 1, 1, 1, 1, 1, 1, 1, 1])
    (found,) = compared(before, after)
    assert found[:4] == ("product", 9, 3, 8)
    assert (found.won, found.lost) == (("2", "3", "4", "5", "6", "7"), ("0",))
    assert found.p == pytest.approx(2 * (1 + 7) / 2**7)
    assert "| product | 9 | 3 | 8 | +55.6 | 6 | 1 | 0.125 |" in comparison_table([found])


def test_the_sides_of_one_file_are_compared_with_its_bare_model(tmp_path):
    path = written(tmp_path / "out.json", [1, 0, 0], side="bare")
    written(path, [1, 1, 0])
    (found,) = compared(path)
    assert found == ("product over bare", 3, 1, 2, ("1",), (), 1.0)


def test_where_nothing_is_in_common_there_is_no_comparison(tmp_path):
    one, other = written(tmp_path / "a.json", [1]), written(tmp_path / "b.json", [1], side="bare")
    with pytest.raises(DefinitionError, match="nothing to compare"):
        compared(one, other)
    other = written(tmp_path / "c.json", [1], head={**HEAD, "benchmark": "humaneval"})
    with pytest.raises(DefinitionError, match="different benchmarks"):
        compared(one, other)
