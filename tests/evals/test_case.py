"""Cases as plain data."""

from __future__ import annotations

import json

import pytest

from agex.errors import DefinitionError
from agex.evals import Case, evaluate, read_cases

ROWS = [{"name": "two", "inputs": {"n": 2}, "expected": 4}, {"inputs": {"n": None}, "expected": None}]


@pytest.mark.parametrize("text", [json.dumps(ROWS, indent=1), "\n\n".join(map(json.dumps, ROWS))])
def test_cases_are_read_from_an_array_and_from_lines(tmp_path, text):
    (tmp_path / "cases").write_text(text)
    first, second = read_cases(tmp_path / "cases")
    assert (first.name, first.inputs, first.expected) == ("two", {"n": 2}, 4)
    assert (second.name, second.inputs, second.expected) == (None, {"n": None}, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"inputs": {}}\n{"inputs": ', "line 2: no JSON"),
        ('[{"inputs": {}}, {"input": {}}]', "item 2: a case has no input; it has inputs, expected, name"),
        ("[3]", "item 1: 3 is no case"),
        ('{"inputs": [1]}', r"line 1: inputs=\[1\]: give arguments by name"),
        ('{"name": 7}', "line 1: name=7: give a text"),
    ],
)
def test_a_file_that_holds_something_else_says_where(tmp_path, text, message):
    (tmp_path / "cases").write_text(text)
    with pytest.raises(DefinitionError, match=message):
        read_cases(tmp_path / "cases")


def test_mappings_stand_for_cases_and_positions_for_names():
    report = evaluate(lambda n: n, [{"inputs": {"n": 1}, "expected": 1}, Case(inputs={"n": 2}, expected=2)])
    assert [case.name for case in report.cases] == ["1", "2"]
    assert report.pass_rate == 1.0


def test_cases_that_cannot_be_told_apart_are_refused():
    with pytest.raises(DefinitionError, match="Two cases are called '2'"):
        evaluate(lambda: 1, [Case(name="2", expected=1), Case(expected=1)])


def test_no_cases_are_refused():
    with pytest.raises(DefinitionError, match="no cases"):
        evaluate(lambda: 1, [])
