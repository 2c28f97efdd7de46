"""Examples that a docstring states in words, and what is prose."""

from __future__ import annotations

import numpy as np
import pytest

from agex.contract import doc_examples, outcome_matches


def read(doc: str, name: str = "f") -> list[tuple[str, str]]:
    return [(each.source, each.expected_text) for each in doc_examples(doc, name)]


@pytest.mark.parametrize(
    "line",
    [
        "f(2, [3]) == {'a': 4}",
        "f(2, [3]) => {'a': 4}",
        "f(2, [3]) ==> {'a': 4}",
        "f(2, [3])->{'a': 4}",
        "f(2, [3]) → {'a': 4}",
        "f(2, [3]) ➞ {'a': 4} ",
        "f(2, [3]) = {'a': 4}",
        "f(2,[3])  returns {'a': 4}",
        "f(2, [3]) should return {'a': 4}.",
        "f(2, [3]) should be {'a': 4}",
        "f(2, [3])   # returns {'a': 4}",
        "f(2, [3]) # => {'a': 4} (a remark)",
        "f(2, [3]) == {'a': 4}  # a remark",
        "    * f(2, [3]) == {'a': 4}",
        "- ``f(2, [3]) == {'a': 4}``",
        "1. `f(2, [3])` -> `{'a': 4}`",
        "for f(2, [3]) == {'a': 4}",
        "assert f(2, [3]) == {'a': 4}",
        ">>> f(2, [3]) == {'a': 4}",
        "f(2,\n  [3]) == {'a': 4}",
        "f(2, [3]) == {\n    'a': 4}",
    ],
)
def test_a_call_with_its_outcome_is_an_example(line: str) -> None:
    (example,) = doc_examples(f"Do it.\n\n{line}\n\nMore.", "f")
    assert example.source == "f(2, [3])"
    assert example.arguments() == ((2, [3]), {})
    assert outcome_matches(example, value={"a": 4})
    assert not outcome_matches(example, value={"a": 5})


@pytest.mark.parametrize(
    ("text", "example"),
    [
        ("For x = 2 the output should be 5.", ("f(x=2)", "5")),
        ('For s = "ab", c = "b"  the result should be (\'a\', False)', ("f(s='ab', c='b')", "('a', False)")),
        ("If n = 150, the sum of digits will be 6 and the output should be '110'.", ("f(n=150)", "'110'")),
        ("Given x = 1.5 and y = 2, the answer is 3", ("f(x=1.5, y=2)", "3")),
        ("Input: a = [1, 2], k = 3\nOutput: [1]\nExplanation: none", ("f(a=[1, 2], k=3)", "[1]")),
        ("Example 1:\n    Input:  [4, 2]\n    Output: [2, 1]\n", ("f([4, 2])", "[2, 1]")),
        ("Input: 'a', 3\nExpected output: None", ("f('a', 3)", "None")),
    ],
)
def test_a_sentence_with_inputs_and_an_outcome_is_an_example(text: str, example: tuple[str, str]) -> None:
    assert read(text) == [example]


@pytest.mark.parametrize(
    "text",
    [
        "f(2)",
        "f(2) 4",
        "f(x) == 4",
        "f(2) == x",
        "f(2) == g(2)",
        "f(2) == 1 + 3",
        "f(2) -> 4 - 1 = 3",
        "f(2) == 4 or 5",
        "f(2) == [1, ...]",
        "f([1, ...]) == 4",
        "f(2) -> int",
        "f(*[2]) == 4",
        "f(**{'x': 2}) == 4",
        "f(2) == ('a')",
        "f(2) + f(3) == 9",
        "f(f(2)) == 9",
        "f(2) != 4",
        "f(2) >= 4",
        "f(2) == 4  # doctest: +SKIP",
        "f(2) == 4 (a remark)  # doctest: +SKIP",
        ">>> f(2) == 4  # doctest: +SKIP",
        "ff(2) == 4",
        "o.f(2) == 4",
        "F(2) == 4",
        "We know that f(2) == 4 holds.",
        "if f(2) == 4: stop",
        "For x = 2 * 3 the output should be 5",
        "For x = y the output should be 5",
        "For x == 2 the output should be 5",
        "For all x the output should be 5",
        "For x = 2, x = 3 the output should be 5",
        "For x = 2 the output should be at most 5",
        "Input: a table with columns\nOutput: 5",
        "Input: x = 2",
        "x = 2\nOutput: 5",
        "f('a' == 4",
        "f(",
        "Input:",
        "For x = ",
    ],
)
def test_what_reads_otherwise_is_prose(text: str) -> None:
    assert read(text) == []


def test_the_same_arguments_with_two_outcomes_are_prose() -> None:
    assert read("f(1) = 2\nf(2) = 3\nf(1) == 4\nf( 1 ) = 2") == [("f(2)", "3")]


def test_an_example_is_read_once() -> None:
    assert read("f(1) = 2\nf(1) = 2") == [("f(1)", "2")]
    assert read(">>> f(1) == 2\nTrue\n\nf(2) == 3\n\n>>> f(4)\n5\n") == [
        ("f(1) == 2", "True"),
        ("f(4)", "5"),
        ("f(2)", "3"),
    ]


@pytest.mark.parametrize(
    ("word", "value"), [("true", True), ("False", False), ("null", None), ("none", None), ("None", None)]
)
def test_words_of_other_languages_are_understood(word: str, value: object) -> None:
    (example,) = doc_examples(f"f(1) => {word}", "f")
    assert outcome_matches(example, value=value)
    assert not outcome_matches(example, value=0)


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        ("0.33", [1 / 3, 0.33], [0.34, 0, "0.33", None, float("nan"), float("inf")]),
        ("-0.5", [-0.5, -0.46], [0.5, -0.6]),
        ("6.00", [6.0, 6, 6.004], [6.01, 7]),
        ("6", [6, 6.0, np.int64(6), np.float64(6)], [6.001, True, [6]]),
        ("1e-3", [0.001], [0.0012]),
        ("[0.3, 2]", [[1 / 3, 2]], [(1 / 3, 2), [1 / 3], [1 / 3, 2.1], 0.3]),
        ("(0.3, 'a')", [(1 / 3, "a")], [[1 / 3, "a"], (1 / 3, "b")]),
        ("{'a': [0.3]}", [{"a": [1 / 3]}], [{"a": 1 / 3}, {"b": [1 / 3]}, {}]),
        ("True", [True, np.bool_(1)], [1, "True"]),
        ("'4'", ["4"], [4]),
        ("{1, 2}", [{2, 1}], [[1, 2]]),
    ],
)
def test_a_value_is_as_exact_as_the_outcome_is_written(
    text: str, right: list[object], wrong: list[object]
) -> None:
    (example,) = doc_examples(f"f(1) == {text}", "f")
    assert [value for value in right if not outcome_matches(example, value=value)] == []
    assert [value for value in wrong if outcome_matches(example, value=value)] == []


@pytest.mark.parametrize(
    "line", ["f(" + "(" * 5000, "f('" + "1)," * 5000, "Input: " + "1, " * 5000, "For x = " + "[1], " * 5000]
)
def test_a_long_line_without_an_end_is_prose(line: str) -> None:
    assert read("\n".join([line] * 20)) == []


@pytest.mark.parametrize("deep", ["-" * 900 + "1", "(" * 450 + "1" + ",)" * 450, "[" * 90 + "]" * 90])
def test_a_deep_line_raises_nothing(deep: str) -> None:
    assert len(read(f"f({deep}) == {deep}\nf(1) == 2")) in (1, 2)


@pytest.mark.filterwarnings("error")
def test_an_escape_that_python_does_not_know_warns_of_nothing() -> None:
    assert read("f('\\d') == '\\d'") == [("f('\\\\d')", "'\\d'")]


def test_no_part_of_a_long_outcome_is_an_example() -> None:
    assert read(f"f(1) == {'7' * 2000}") == []
