"""Variables that share mutable objects are one group, and share them still when they come back."""

from __future__ import annotations

import collections
import enum
import types
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agex.values import Allow, Group, decode, encode


class Level(enum.Enum):
    LOW = 1


ALLOW = Allow([Level])


def groups(**variables: Any) -> list[tuple[str, ...]]:
    return [group.names for group in encode(variables, allow=ALLOW)]


def stored(**variables: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = {}
    for group in encode(variables, allow=ALLOW):
        own = tuple(memoryview(bytearray(part)) for part in group.buffers)
        loaded |= decode(Group(names=group.names, stream=group.stream, buffers=own), allow=ALLOW)
    return loaded


INNER: dict[str, Any] = {
    "list": [1],
    "dict": {"a": 1},
    "empty dict": {},
    "set": {1},
    "bytearray": bytearray(b"a"),
    "array": np.zeros(3),
    "object array": np.array([[1]], object),
    "frame": pd.DataFrame({"a": [1]}),
    "series": pd.Series([1]),
    "deque": collections.deque([1]),
    "namespace": types.SimpleNamespace(a=1),
    "counter": collections.Counter("a"),
}


@pytest.mark.parametrize("name", INNER)
def test_a_shared_object_joins_variables_and_is_shared_again(name: str) -> None:
    inner = INNER[name]
    variables = {"a": inner, "b": [inner], "c": {"k": (1, [inner])}, "d": 5}
    assert groups(**variables) == [("a", "b", "c"), ("d",)]
    got = stored(**variables)
    assert got["b"][0] is got["a"]
    assert got["c"]["k"][1][0] is got["a"]


ALONE: dict[str, Any] = {
    "text": "a long text of many words",
    "number": 10**30,
    "tuple": (1, ("a", 2.5)),
    "frozenset": frozenset([1]),
    "type": int,
    "member": Level.LOW,
    "function": len,
    "index": pd.Index([1, 2]),
    "dtype": pd.CategoricalDtype(["a"]),
    "timestamp": pd.Timestamp("2020", tz="Europe/Berlin"),
    "scalar": np.float64(1),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_constant_joins_nothing(name: str) -> None:
    assert groups(a=ALONE[name], b=[ALONE[name]], c={"k": (ALONE[name],)}) == [("a",), ("b",), ("c",)]


def test_variables_are_joined_through_each_other() -> None:
    one, two = [1], [2]
    assert groups(a=[one], b=[two], c=[one, two], d=[3]) == [("a", "b", "c"), ("d",)]


def test_a_shared_object_is_found_behind_many_constants() -> None:
    inner = [0]
    assert groups(a=[*range(10_000), inner], b={**dict.fromkeys(range(10_000)), "k": inner}) == [("a", "b")]


def test_copies_of_a_frame_are_groups_of_their_own() -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    assert groups(a=frame, b=frame.copy(), c=frame[["a"]]) == [("a",), ("b",), ("c",)]


def test_a_mutable_object_in_a_frame_is_shared() -> None:
    inner = [1]
    got = stored(df=pd.DataFrame({"o": [inner, None]}), x=inner)
    assert got["df"]["o"][0] is got["x"]


VIEWS = {
    "a slice": lambda a: a[2:50],
    "every third": lambda a: a[::3],
    "reversed": lambda a: a[::-1],
    "transposed": lambda a: a.reshape(100, -1).T,
    "another dtype": lambda a: a.view("i8"),
    "the whole": lambda a: a[:],
    "read-only": lambda a: np.broadcast_to(a, (2, len(a))),
    "a view of a view": lambda a: a[10:][5:],
    "one element": lambda a: a[3:4].reshape(()),
}


@pytest.mark.parametrize("size", [200, 20_000])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_sees_what_is_written_to_its_base(name: str, size: int) -> None:
    base = np.arange(float(size))
    view = VIEWS[name](base)
    assert groups(base=base, view=[view]) == [("base", "view")]
    got = stored(base=base, view=[view])
    assert got["view"][0].tobytes() == view.tobytes()
    assert got["view"][0].flags.writeable == view.flags.writeable
    base[:], got["base"][:] = 7, 7
    assert got["view"][0].tobytes() == view.tobytes()
    assert np.shares_memory(got["base"], got["view"][0])


def test_views_without_their_base_share_memory() -> None:
    base = np.arange(1000.0)
    left, right = base[:600], base[400:]
    del base
    got = stored(left=left, right=right)
    got["left"][500] = -1
    assert got["right"][100] == -1


def test_a_lone_view_does_not_store_what_it_does_not_show() -> None:
    (group,) = encode({"x": np.zeros(1_000_000)[:10]}, allow=ALLOW)
    assert group.size < 500


def test_a_view_of_times_and_of_objects_is_shared() -> None:
    times = np.arange(10).astype("M8[s]")
    objects = np.array([[1], [2], [3], None], object)
    objects_view = objects[1::2]
    got = stored(a=times, b=times[2:], c=objects, d=objects_view)
    got["a"][2] = np.datetime64("2030")
    got["c"][1] = "new"
    assert got["b"][0] == np.datetime64("2030")
    assert got["d"].tolist() == ["new", None]


def test_a_view_that_came_back_is_shared_when_it_is_stored_again() -> None:
    base = np.arange(1000.0)
    got = stored(**stored(a=base, b=base[5:]))
    got["a"][5] = -1
    assert got["b"][0] == -1


def test_the_graph_behind_an_object_of_the_host_is_not_walked() -> None:
    class Connection:
        def __init__(self) -> None:
            self.pool = shared

    shared = [1]
    assert groups(a=Connection(), b=shared) == [("a",), ("b",)]


def test_a_long_chain_of_objects_is_walked_without_recursion() -> None:
    head: list[Any] = []
    for _ in range(400):
        head = [head]
    assert groups(a=head, b=[head]) == [("a", "b")]


def test_tuples_that_share_tuples_are_walked_once() -> None:
    doubled: Any = ([],)
    for _ in range(60):
        doubled = (doubled, doubled)
    assert groups(a=doubled) == [("a",)]
