"""Frames, pictures and graphs as a preview shows them: what a reader would look at first."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from agex.contract import preview

FRAME = pd.DataFrame(
    {
        "day": pd.date_range("2024-01-01", periods=30),
        "units": [1.5, None, 7] * 10,
        "shop": ["north", "south", None] * 10,
        "kind": pd.Categorical(list("xyz") * 10),
        "open": [True, False, True] * 10,
        "count": pd.array([1, None, 2] * 10, dtype="Int64"),
        "key": [f"k{n}" for n in range(30)],
    }
)


@pytest.mark.parametrize(
    "line",
    [
        "DataFrame, 30 rows x 7 columns",
        "  'day': datetime64[us], 2024-01-01 .. 2024-01-30",
        "  'units': float64, 10 null, 1.5 .. 7.0",
        "  'shop': str, 10 null, 2 distinct: 'north', 'south'",
        "  'kind': category of 'x', 'y', 'z'",
        "  'open': bool, 20 true",
        "  'key': str, all distinct: 'k0', 'k1', 'k2', ...",
    ],
)
def test_each_column_is_told_with_its_type_nulls_and_range_or_values(line):
    assert line in preview(FRAME, 3_000).splitlines()


def test_the_first_and_the_last_rows_are_shown():
    rows = preview(FRAME, 3_000).splitlines()[-5:]
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "28", "29"]


def test_the_names_of_all_columns_are_shown():
    wide = pd.DataFrame(np.zeros((3, 120)), columns=[f"column_{n}" for n in range(120)])
    text = preview(wide, 6_000)
    assert all(f"'column_{n}'" in text for n in range(120))
    assert len(text) <= 6_000


def test_a_series_is_told_like_a_column():
    assert preview(FRAME["units"], 500).startswith(
        "Series 'units', length 30, dtype float64, 10 null, 1.5 .. 7.0\n"
    )


def test_no_cell_is_asked_for_anything():
    class Hostile:
        def _refuse(self, *args):
            raise AssertionError

        __eq__ = __lt__ = __repr__ = __str__ = __bool__ = __len__ = __iter__ = _refuse
        __hash__ = None

    class Text(str):
        __eq__ = __hash__ = __repr__ = __str__ = Hostile._refuse
        __slots__ = ()

    frame = pd.DataFrame({"a": [Hostile(), 1], "b": pd.Series([Text("x"), "y"], dtype=object)})
    assert "cannot be shown" not in preview(frame, 1_000)


def test_a_large_frame_is_told_in_a_moment():
    large = pd.DataFrame({"a": np.arange(3_000_000), "b": ["x"] * 3_000_000})
    began = time.perf_counter()
    text = preview(large, 2_000)
    assert time.perf_counter() - began < 2
    assert "int64, of the first 1,000,000 rows, 0 .. 999999" in text


def test_pictures_are_told_by_size_and_mode():
    assert preview(Image.new("RGB", (64, 32))) == "<Image 64x32 RGB>"


def test_frames_of_polars_are_told_by_shape_and_columns():
    assert preview(pl.DataFrame({"a": [1], "b": ["x"]})) == (
        "<polars DataFrame shape=(1, 2) columns 'a': Int64, 'b': String>"
    )


@pytest.mark.parametrize(("directed", "edges"), [(False, 2), (True, 2)])
def test_graphs_are_told_by_their_counts(directed, edges):
    networkx = pytest.importorskip("networkx", reason="the extra `test` has networkx only later")
    graph = (networkx.DiGraph if directed else networkx.Graph)([(1, 2), (2, 3)])
    assert preview(graph) == f"<{type(graph).__name__} 3 nodes, {edges} edges>"


def test_a_dict_keeps_its_order():
    assert preview({"z": 1, "a": 2, "m": 3}) == "{'z': 1, 'a': 2, 'm': 3}"
    assert preview({f"k{9_999 - n}": n for n in range(10_000)}, 200).startswith("{'k9999': 0, 'k9998': 1")
