"""A fingerprint changes when an object changes in place, and only then."""

from __future__ import annotations

import array
import collections
import datetime as dt
import random
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

from agex.values import Allow, cut, decode, encode, fingerprint
from agex.values.base.group import BLOCK


@dataclass
class Order:
    number: int
    lines: list[Any] = field(default_factory=list)


class Item(BaseModel):
    name: str


ALLOW = Allow([Order, Item])


def prints(value: Any) -> list[Any]:
    return [fingerprint(group) for group in encode({"x": value}, allow=ALLOW)]


def setter(name: str, value: Any) -> Callable[[Any], None]:
    return lambda each: setattr(each, name, value)


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "a": np.arange(1000),
            "s": ["x"] * 1000,
            "c": pd.Categorical(["u", "v"] * 500),
            "t": pd.date_range("2020", periods=1000),
            "o": [[1]] * 1000,
            "i": pd.array([1, None] * 500, dtype="Int64"),
            "z": pd.date_range("2020", periods=1000, tz="UTC"),
        }
    )


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list append": (lambda: [1, 2], lambda x: x.append(3)),
    "deep list": (lambda: {"a": [[[1]]]}, lambda x: x["a"][0][0].append(2)),
    "one of many dicts": (lambda: [{"i": i} for i in range(2000)], lambda x: x[1500].update(i=-1)),
    "dict order": (lambda: {"a": 1, "b": 2}, lambda x: x.update(a=x.pop("a"))),
    "int for bool": (lambda: [True], lambda x: x.__setitem__(0, 1)),
    "int for float": (lambda: [1], lambda x: x.__setitem__(0, 1.0)),
    "sign of zero": (lambda: [0.0], lambda x: x.__setitem__(0, -0.0)),
    "set": (lambda: {1, 2}, lambda x: x.add(3)),
    "bytearray": (lambda: bytearray(300_000), lambda x: x.__setitem__(299_999, 1)),
    "small array": (lambda: np.zeros(3), lambda x: x.__setitem__(1, 1)),
    "large array": (lambda: np.zeros(100_000), lambda x: x.__setitem__(99_999, 1)),
    "strided array": (lambda: np.zeros((300, 300))[:, ::2], lambda x: x.__setitem__((299, 149), 1)),
    "array flags": (lambda: np.zeros(3), lambda x: x.setflags(write=False)),
    "object array": (lambda: np.array([[1], None], object), lambda x: x[0].append(2)),
    "record": (lambda: np.zeros(3, [("a", "i4"), ("b", "f8")]), lambda x: x["b"].__setitem__(2, 1)),
    "masked array": (lambda: np.ma.array([1, 2]), lambda x: x.__setitem__(0, np.ma.masked)),
    "frame cell": (frame, lambda x: x.__setitem__("a", x["a"].where(x.index != 500, -1))),
    "frame cell in place": (frame, lambda x: x.iloc.__setitem__((999, 0), -1)),
    "frame text": (frame, lambda x: x.loc.__setitem__((5, "s"), "y")),
    "frame category": (frame, lambda x: x.loc.__setitem__((5, "c"), "u")),
    "frame time": (frame, lambda x: x.loc.__setitem__((5, "t"), pd.Timestamp("1999"))),
    "frame object": (frame, lambda x: x["o"][3].append(1)),
    "frame nullable": (frame, lambda x: x.loc.__setitem__((1, "i"), 3)),
    "frame zone": (frame, lambda x: x.loc.__setitem__((1, "z"), pd.Timestamp("1999", tz="UTC"))),
    "frame column": (frame, lambda x: x.insert(0, "n", 1)),
    "frame index": (frame, lambda x: setattr(x, "index", x.index + 1)),
    "frame name": (frame, lambda x: setattr(x.columns, "name", "n")),
    "frame attrs": (frame, lambda x: x.attrs.update(a=1)),
    "series": (lambda: pd.Series([1, 2]), lambda x: x.__setitem__(0, 5)),
    "deque": (lambda: collections.deque([1]), lambda x: x.rotate(1) or x.append(2)),
    "counter": (lambda: collections.Counter("a"), lambda x: x.update("a")),
    "factory": (lambda: collections.defaultdict(list), setter("default_factory", dict)),
    "namespace": (lambda: types.SimpleNamespace(a=1), setter("a", 2)),
    "dataclass": (lambda: Order(1), lambda x: x.lines.append(1)),
    "model": (lambda: Item(name="a"), setter("name", "b")),
    "array of numbers": (lambda: array.array("i", [1]), lambda x: x.append(1)),
    "random": (lambda: random.Random(1), lambda x: x.random()),
    "generator": (lambda: np.random.default_rng(1), lambda x: x.random()),
    "datetime in a list": (
        lambda: [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)],
        lambda x: x.__setitem__(0, dt.datetime(2020, 1, 1, tzinfo=dt.UTC, fold=1)),
    ),
    "exception": (lambda: ValueError("a"), lambda x: x.add_note("n")),
    "aliases": (lambda: [[1], [1]], lambda x: x.__setitem__(1, x[0])),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_in_place_is_noticed_and_nothing_else_is(name: str) -> None:
    make, change = CHANGES[name]
    value = make()
    before = prints(value)
    assert prints(value) == before
    change(value)
    after = prints(value)
    assert after != before
    assert prints(value) == after


@pytest.mark.parametrize("name", CHANGES)
def test_a_loaded_value_is_unchanged_until_it_is_changed(name: str) -> None:
    make, change = CHANGES[name]
    (group,) = encode({"x": make()}, allow=ALLOW)
    copied = type(group)(
        names=group.names, stream=group.stream, buffers=tuple(memoryview(bytes(b)) for b in group.buffers)
    )
    value = decode(copied, allow=ALLOW)["x"]
    before = prints(value)
    repr(value)
    assert prints(value) == before
    if name not in {"array flags", "aliases"}:
        change(value)
        assert prints(value) != before


def test_reading_a_frame_does_not_change_it() -> None:
    data = frame()
    before = prints(data)
    data.describe()
    data.groupby("s")["a"].sum()
    data.sort_values("a")
    _ = data["a"], data.loc[3], data.index.is_unique, data.iloc[:5], data.to_dict(), data.T, data.values
    assert prints(data) == before


def test_a_set_that_another_process_stored_is_not_a_change() -> None:
    program = (
        "import sys\nfrom agex.values import *\n"
        "(g,) = encode({'x': {'a', 'b', 'c', ('d', 1)}}, allow=Allow())\nsys.stdout.buffer.write(g.stream)"
    )
    streams = set()
    for seed in "123":
        stream = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        streams.add(stream)
        (group,) = encode({"x": set()}, allow=ALLOW)
        loaded = decode(type(group)(names=("x",), stream=stream), allow=ALLOW)["x"]
        assert loaded == {"a", "b", "c", ("d", 1)}
        assert prints(loaded) == prints(loaded)
    assert len(streams) > 1


def test_the_names_are_part_of_a_fingerprint() -> None:
    shared = [1]
    one = [fingerprint(g) for g in encode({"a": shared, "b": shared}, allow=ALLOW)]
    other = [fingerprint(g) for g in encode({"a": shared, "c": shared}, allow=ALLOW)]
    assert one != other


def address(data: memoryview) -> bytes:
    import hashlib

    return hashlib.blake2b(data, digest_size=32).digest()


def test_one_changed_cell_of_a_large_frame_is_one_chunk() -> None:
    data = pd.DataFrame(np.zeros((100_000, 10)))
    (group,) = encode({"df": data}, allow=ALLOW)
    before, whole = fingerprint(group), cut(group, address)
    data.iloc[50_000, 5] = 1
    (group,) = encode({"df": data}, allow=ALLOW)
    asked: list[int] = []

    def counting(block: memoryview) -> bytes:
        asked.append(block.nbytes)
        return address(block)

    again = cut(group, counting, now=fingerprint(group), before=(before, whole.recipe))
    assert asked == [BLOCK]
    assert len(again.chunks) == 1
    assert again.payload == cut(group, address).payload
