from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from agex.contract import same_value

NAN = float("nan")
Pair = namedtuple("Pair", "a b")  # noqa: PYI024


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (1, 1),
        (1, 1.0),
        (NAN, NAN),
        ([NAN, 1], [float("nan"), 1]),
        ({"a": [1, (2, 3)]}, {"a": [1, (2, 3)]}),
        ({1, 2}, {2, 1}),
        ({1}, frozenset({1})),
        (None, None),
        (OrderedDict(a=1), {"a": 1}),
        (np.int64(3), 3),
        ([np.float64(1.5)], [1.5]),
        (Point(1), Point(1)),
        (Pair(1, 2), Pair(1, 2)),
        (Pair(1, 2), (1, 2)),
        (np.array([1.0, NAN]), np.array([1.0, NAN])),
        (np.array(["a"]), np.array(["a"])),
        (pd.DataFrame({"a": [1.0, NAN]}), pd.DataFrame({"a": [1.0, NAN]})),
        (pd.Series([1]), pd.Series([1])),
        ([np.array([1])], [np.array([1])]),
    ],
)
def test_the_same_answer(got, expected):
    assert same_value(got, expected)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (1, True),
        (True, 1),
        (1, "1"),
        ("a", b"a"),
        ([1], (1,)),
        ([1, 2], [1]),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 2}, {"a": 1}),
        (None, 0),
        (0.1 + 0.2, 0.3),
        (Point(1), Point(2)),
        ({"x": 1}, Point(1)),
        (np.array([1]), np.array([2])),
        ([1], np.array([1])),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
        (pd.Series([1]), pd.DataFrame({"a": [1]})),
        ([[True]], [[1]]),
    ],
)
def test_another_answer(got, expected):
    assert not same_value(got, expected)


def test_values_that_contain_themselves_are_compared():
    a: list[object] = [1]
    a.append(a)
    b: list[object] = [1]
    b.append(b)
    assert same_value(a, b)
    b[0] = 2
    assert not same_value(a, b)


class Word(str):
    """What a guest may return for a str, and says that it equals whatever it is compared with."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __hash__(self):
        return hash("right")


class Number(int):
    """The same for a number."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(4)


class Anything:
    """Of no kind, but with the hash of what is expected."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("right")


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (Word("wrong"), "right"),
        (Number(3), 4),
        (Number(3), 4.0),
        ([Word("wrong")], ["right"]),
        ({Word("wrong")}, {"right"}),
        ({(1, Word("wrong"))}, {(1, "right")}),
        ({Word("wrong"): 1}, {"right": 1}),
        ({"right": Word("wrong")}, {"right": "right"}),
        ({Anything()}, {"right"}),
        ({Anything(): 1}, {"right": 1}),
        (Anything(), "right"),
        (np.array([Anything()], dtype=object), np.array(["right"], dtype=object)),
        (pd.Series([Anything()], dtype=object), pd.Series(["right"], dtype=object)),
        (pd.DataFrame({"a": [Anything()]}, dtype=object), pd.DataFrame({"a": ["right"]}, dtype=object)),
    ],
)
def test_an_answer_does_not_decide_itself_whether_it_is_right(got, expected):
    assert not same_value(got, expected)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (Word("right"), "right"),
        ({Word("right"): 1}, {"right": 1}),
        ({("a", 1), None}, {("a", 1), None}),
        ({np.int64(1)}, {1}),
        ({Pair(1, "a")}, {(1, "a")}),
        ({1: "a"}, {1.0: "a"}),
        (pd.Series([1, "a", None, NAN], dtype=object), pd.Series([1, "a", None, NAN], dtype=object)),
        (pd.DataFrame({"a": [1, 2], "b": ["x", pd.NA]}), pd.DataFrame({"a": [1, 2], "b": ["x", pd.NA]})),
        (pd.Series([pd.Timestamp(0), pd.NaT]), pd.Series([pd.Timestamp(0), pd.NaT])),
    ],
)
def test_an_answer_of_a_class_derived_from_the_expected_one_can_be_right(got, expected):
    assert same_value(got, expected)
