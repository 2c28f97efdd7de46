import collections
import enum
import importlib.machinery
import sys
import types
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from agex.contract import preview, short_repr


class Color(enum.Enum):
    RED = 1


@dataclass
class Point:
    x: int = 1
    secret: str = field(default="s", repr=False)


class Model(BaseModel):
    x: int = 1


class Plain:
    def __init__(self):
        self.size = 3
        self._hidden = 4

    def __repr__(self):
        raise RuntimeError("never asked")


CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        ("a", "'a'"),
        ([1, "a", None], "[1, 'a', None]"),
        ((1,), "(1,)"),
        ((), "()"),
        (set(), "set()"),
        ({1}, "{1}"),
        (frozenset({1}), "frozenset({1})"),
        ({"a": [1.5]}, "{'a': [1.5]}"),
        (collections.OrderedDict(a=1), "OrderedDict({'a': 1})"),
        pytest.param(10**5000, "<int of 16610 bits>", id="huge integer"),
        (Color.RED, "Color.RED"),
        (Point(), "Point(x=1)"),
        (Model(), "Model(x=1)"),
        (np.float64(1.5), "np.float64(1.5)"),
        (CYCLE, "[...]"),
        (len, "<function len>"),
        (int, "<class int>"),
        (collections, "<module collections>"),
        (b"x" * 5000, f"b'{'x' * 118}'...b'{'x' * 59}' (length 5000)"),
        (np.arange(3), "ndarray shape=(3,) dtype=int64 values [0, 1, 2]"),
        ([np.zeros((2, 3))], "[<ndarray shape=(2, 3) dtype=float64>]"),
        ([pd.DataFrame({"a": [1]})], "[<DataFrame shape=(1, 1)>]"),
    ],
)
def test_it_shows_a_value(value, text):
    assert preview(value, 200) == text


def test_a_long_list_shows_its_ends_and_its_length():
    text = preview(list(range(1_000_000)), 80)
    assert text.startswith("[0, 1, 2, ")
    assert text.endswith(", ..., 999999] (length 1000000)")


def test_a_long_dict_shows_its_ends_and_its_length():
    text = preview({i: i for i in range(1000)}, 80)
    assert text.startswith("{0: 0, 1: 1")
    assert text.endswith(", ..., 999: 999} (length 1000)")


def test_a_long_string_shows_its_ends_and_its_length():
    text = preview("a" * 500 + "z" * 500, 80)
    assert text.startswith("'aaa")
    assert text.endswith("zzz' (length 1000)")


def test_another_object_shows_its_class_and_public_attributes():
    assert preview(Plain(), 200) == f"<{Plain.__module__}.Plain object: size=3>"


def test_a_table_shows_shape_types_and_first_rows():
    frame = pd.DataFrame({"city": ["Oslo", "Rome"] * 500, "year": range(1000)})
    lines = preview(frame, 300).splitlines()
    assert lines[0] == "DataFrame, 1000 rows x 2 columns"
    assert lines[1] == "  'city': str, 2 distinct: 'Oslo', 'Rome'"
    assert lines[2] == "  'year': int64, 0 .. 999"
    assert lines[4].split() == ["0", "Oslo", "0"]
    assert lines[8].split() == ["999", "Rome", "999"]
    assert len(lines) == 9


def test_a_table_shows_whole_rows_only():
    frame = pd.DataFrame({"text": ["x" * 30] * 10})
    lines = preview(frame, 190).splitlines()
    assert lines[-1].endswith("x" * 30)
    assert len(lines) < 8


def test_a_series_shows_its_name_length_and_type():
    shown = preview(pd.Series([1, 2], name="n"), 200)
    assert shown == "Series 'n', length 2, dtype int64, 1 .. 2\n0    1\n1    2"


VALUES = [
    1,
    "a" * 1000,
    list(range(1000)),
    {i: "x" * i for i in range(100)},
    {"a": {"b": {"c": {"d": {"e": 1}}}}},
    [[1.5] * 100] * 100,
    Plain(),
    Point(),
    Model(),
    np.zeros((50, 50)),
    np.array([Plain()], dtype=object),
    pd.DataFrame({"a" * 300: ["x" * 300]}),
    pd.DataFrame(np.zeros((3, 100))),
    pd.Series(["x" * 300]),
    pd.date_range("2020", periods=100),
]


@pytest.mark.parametrize("limit", [0, 1, 5, 10, 20, 50, 200])
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_it_is_never_longer_than_the_limit(value, limit):
    assert len(preview(value, limit)) <= limit
    assert len(short_repr(value, limit)) <= limit
    assert "\n" not in short_repr(value, limit)


def test_a_huge_value_is_not_written_out_whole():
    class Counted(list):
        pass

    class Loud:
        shown = 0

        @property
        def __dict__(self):
            Loud.shown += 1
            return {}

    preview(Counted([Loud() for _ in range(1000)]), 100)
    assert Loud.shown < 50


def test_a_library_that_another_thread_imports_just_now_is_not_asked(monkeypatch):
    for name in ("numpy", "pandas"):
        spec = importlib.machinery.ModuleSpec(name, None)
        spec._initializing = True
        module = types.ModuleType(name)
        module.__spec__ = spec
        monkeypatch.setitem(sys.modules, name, module)
    assert preview([1]) == "[1]"
