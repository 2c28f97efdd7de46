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


TEXTS = np.array(["ab", "cd" * 40, "e"], np.dtypes.StringDType())
RECORDS = np.array([([1], 2, (3, None)), ("a", 5, (6, None))], "O, i4, 2O")
ROOTS: dict[str, tuple[Any, Any]] = {
    "an order of its own": (np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2) * 2, lambda a: a[1]),
    "an order of its own, and no stride": (
        np.arange(24).reshape(4, 1, 6).transpose(1, 2, 0).copy("K").transpose(1, 0, 2),
        lambda a: a[1:, :, ::2],
    ),
    "Fortran": (np.asfortranarray(np.arange(6).reshape(2, 3)), lambda a: a[:, 1:]),
    "windows": (np.lib.stride_tricks.sliding_window_view(np.arange(8), 3), lambda a: a[1:]),
    "objects in Fortran's order": (np.array([[1, "a"], [2, None]], object, order="F"), lambda a: a[0]),
    "objects in an order of their own": (
        np.arange(24).astype(object).reshape(2, 3, 4).transpose(1, 0, 2).copy("K"),
        lambda a: a[1, ::-1],
    ),
    "texts": (TEXTS, lambda a: a[1:]),
    "texts, backwards": (TEXTS, lambda a: a[::-2]),
    "one text": (TEXTS, lambda a: a[1:2]),
    "records with objects": (RECORDS, lambda a: a[1:]),
    "numbers of records with objects": (RECORDS, lambda a: a["f1"]),
    "objects of records": (RECORDS, lambda a: a["f0"][::-1]),
}  # fmt: skip


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("name", ROOTS)
def test_a_view_shows_the_same_of_a_base_of_any_form(name: str, names: tuple[str, str]) -> None:
    base = ROOTS[name][0].copy("K")
    if name == "windows":
        base = ROOTS[name][0]
    root, view = names
    variables = {root: base, view: ROOTS[name][1](base)}
    assert groups(**variables) == [("a", "b")]
    for got in (stored(**variables), stored(**stored(**variables))):
        for each, value in variables.items():
            assert repr(got[each]) == repr(value)
            assert (got[each].dtype, got[each].flags.writeable) == (value.dtype, value.flags.writeable)
        assert np.shares_memory(got["a"], got["b"])
    assert got[root].flags.owndata or name == "windows" or not base.dtype.hasobject


UNSHARED: dict[str, tuple[Any, Any]] = {
    "gaps between items": (np.ndarray((5,), "i4", bytearray(range(40)), strides=(8,)), lambda a: a[1:]),
    "items that overlap": (np.ndarray((5,), "i4", bytearray(range(8)), strides=(1,)), lambda a: a[1:]),
    "several fields of records": (RECORDS, lambda a: a[["f0", "f1"]]),
    "a field of many objects": (RECORDS, lambda a: a["f2"]),
    "none of the objects": (np.array([1, None], object), lambda a: a[2:]),
    "nothing": (np.arange(3), lambda a: a[3:]),
    "texts in two dimensions": (TEXTS, lambda a: a.reshape(3, 1)),
}  # fmt: skip


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("name", UNSHARED)
def test_what_a_view_cannot_be_written_as_is_kept_on_its_own(name: str, names: tuple[str, str]) -> None:
    base, view = ROOTS.get(name, UNSHARED[name])
    variables = dict(zip(names, (base, view(base)), strict=True))
    got = stored(**variables)
    for each, value in variables.items():
        assert repr(got[each]) == repr(value)
        assert (got[each].dtype, got[each].shape) == (value.dtype, value.shape)


def test_a_view_that_leaves_its_base_is_kept_on_its_own() -> None:
    base = np.arange(100)
    inner = base[10:20]
    outer = np.lib.stride_tricks.as_strided(inner[5:], (10,), (8,))
    del base
    got = stored(a=inner, b=outer, c=inner[1:])
    assert got["b"].tolist() == [*range(15, 25)]


def test_a_view_keeps_whether_it_can_be_written_to() -> None:
    base = np.arange(3.0)
    view, constant = base[1:], base[:2]
    base.flags.writeable = constant.flags.writeable = False
    got = stored(a=base, b=view, c=constant)
    assert [got[name].flags.writeable for name in "abc"] == [False, True, False]
    got["b"][0] = 9
    assert (got["a"][1], got["c"][1]) == (9, 9)
    objects = np.array([1, None], object)
    objects_view = objects[1:]
    objects.flags.writeable = False
    got = stored(a=objects, b=objects_view)
    assert [got[name].flags.writeable for name in "ab"] == [False, True]


@pytest.mark.parametrize("names", ["abcd", "badc", "dcba", "cdab"])
def test_objects_of_a_base_are_shared_whoever_is_met_first(names: str) -> None:
    inner = [1]
    base = np.empty(4, object)
    base[0] = inner
    values = dict(zip(names, (base[1:], base[2:], inner, [base]), strict=True))
    assert groups(**values) == [("a", "b", "c", "d")]
    got = stored(**values)
    assert got[names[3]][0][0] is got[names[2]]
    only = dict(zip(names, (base[1:], base[2:], inner), strict=False))
    got = stored(**only)
    assert got[names[0]].base is not None
    assert np.shares_memory(got[names[0]], got[names[1]])


def test_windows_are_stored_as_a_view_of_what_they_go_over() -> None:
    base = np.arange(2000.0)
    windows = np.lib.stride_tricks.sliding_window_view(base, 100)
    (group,) = encode({"a": windows, "b": base}, allow=ALLOW)
    assert group.size < 20_000
    got = stored(a=windows, b=base)
    got["b"][5] = -1
    assert got["a"][5, 0] == -1


def test_an_array_of_objects_may_hold_a_view_of_itself() -> None:
    objects = np.empty(3, object)
    objects[0] = objects[1:]
    objects[1] = 5
    got = stored(x=objects)["x"]
    assert got[0][0] == 5
    assert np.shares_memory(got[0], got)


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
