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
