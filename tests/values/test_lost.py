"""What cannot be kept: only it is lost, and who uses it is told."""

from __future__ import annotations

import copy
import operator
import pickle
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agex.errors import UnpicklableVariableError
from agex.values import Allow, NotKept, decode, encode, fingerprint, not_kept_error
from agex.values.base.allowlist import class_name

ALLOW = Allow()


def stored(**variables: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    loaded: dict[str, Any] = {}
    lost: dict[str, Any] = {}
    for group in encode(variables, allow=ALLOW):
        lost |= group.lost
        loaded |= decode(group, allow=ALLOW)
    return loaded, lost


def test_a_lock_in_a_dict_of_a_thousand_rows_loses_only_the_lock() -> None:
    rows: dict[str, Any] = {f"row {i}": [i] for i in range(1000)}
    rows["row 7"].append(threading.Lock())
    got, lost = stored(rows=rows)
    assert [(each.path, each.type) for each in lost["rows"]] == [("rows['row 7'][1]", "_thread.lock")]
    assert got["rows"]["row 9"] == [9]
    assert len(got["rows"]) == 1000
    with pytest.raises(
        UnpicklableVariableError, match=r"rows\['row 7'\]\[1\] \(_thread.lock\) is not available"
    ):
        got["rows"]["row 7"][1].acquire()


def test_a_variable_that_is_lost_as_a_whole_is_a_marker() -> None:
    cursor = sqlite3.connect(":memory:").cursor()
    got, lost = stored(cursor=cursor, n=1)
    assert type(got["cursor"]) is NotKept
    assert got["n"] == 1
    assert [each.path for each in lost["cursor"]] == ["cursor"]
    text = str(not_kept_error(got["cursor"], "cursor"))
    first, second, *_ = text.splitlines()
    assert first == "Variable 'cursor' (sqlite3.Cursor) is not available."
    assert second.startswith("It was not persisted from a previous execution because it is unpicklable")
    for solution in (
        "1. Recreate it: cursor = ",
        "2. Chain operations",
        "3. Use this variable only within a single turn",
    ):
        assert solution in text


class Unregistered:
    def __init__(self) -> None:
        self.data = [1]


LOST: dict[str, Callable[[], Any]] = {
    "lock": threading.Lock,
    "generator": lambda: (i for i in ()),
    "iterator": lambda: iter([1]),
    "lambda of the host": lambda: lambda: 1,
    "memoryview": lambda: memoryview(b"a"),
    "dict keys": {}.keys,
    "unregistered": Unregistered,
    "type": lambda: Unregistered,
    "module": lambda: threading,
    "builtin method": lambda: [].append,
}


@pytest.mark.parametrize("name", LOST)
def test_a_leaf_is_lost_wherever_it_is(name: str) -> None:
    make = LOST[name]
    array = np.empty(2, object)
    array[:] = [make(), 1]
    frame = pd.DataFrame({"o": [make(), 1]}, dtype=object)
    got, lost = stored(
        a=[make(), 1],
        b={"k": make(), "n": 1},
        c=(make(), 1),
        d=array,
        e={(1, 2): [make()]},
        f=make(),
        g=frame,
    )
    assert set(lost) == set("abcdefg")
    assert all(
        type(each) is NotKept
        for each in (
            got["a"][0],
            got["b"]["k"],
            got["c"][0],
            got["d"][0],
            got["e"][1, 2][0],
            got["f"],
            got["g"]["o"][0],
        )
    )
    assert (got["a"][1], got["b"]["n"], got["c"][1], got["d"][1], got["g"]["o"][1]) == (1, 1, 1, 1, 1)


def test_a_class_that_is_not_registered_says_how_to_register_it() -> None:
    _, lost = stored(x=Unregistered())
    assert "agent.cls(Unregistered)" in lost["x"][0].reason


USES: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda x: x.read,
    "set": lambda x: setattr(x, "a", 1),
    "delete": lambda x: delattr(x, "a"),
    "call": lambda x: x(),
    "str": str,
    "format": lambda x: f"{x}",
    "percent": lambda x: f"{x:>5}",
    "bool": bool,
    "len": len,
    "iter": iter,
    "next": next,
    "list": list,
    "in": lambda x: 1 in x,
    "item": lambda x: x[0],
    "set item": operator.setitem and (lambda x: operator.setitem(x, 0, 1)),
    "del item": lambda x: operator.delitem(x, 0),
    "add": lambda x: x + 1,
    "radd": lambda x: 1 + x,
    "iadd": lambda x: operator.iadd(x, 1),
    "neg": operator.neg,
    "int": int,
    "float": float,
    "index": lambda x: [1][x],
    "eq": lambda x: x == 1,
    "ne": lambda x: x != 1,
    "lt": lambda x: x < 1,
    "ge": lambda x: x >= 1,
    "sorted": lambda x: sorted([x, x]),
    "with": lambda x: x.__enter__(),
    "unpack": lambda x: [*x],
    "mapping": lambda x: {**x},
    "pickle": lambda x: pickle.dumps(x, 5),
    "round": round,
    "abs": abs,
    "matmul": lambda x: x @ x,
    "contains": lambda x: x in [1, 2],
    "open": open,
    "isinstance of it": lambda x: isinstance(1, x),
}


@pytest.mark.parametrize("name", USES)
def test_any_use_of_a_lost_thing_raises(name: str) -> None:
    got, _ = stored(x=threading.Lock())
    with pytest.raises(UnpicklableVariableError, match=r"'x' \(_thread.lock\) is not available"):
        USES[name](got["x"])


def test_what_is_around_a_lost_thing_works() -> None:
    got, _ = stored(x={"lock": threading.Lock(), "n": 1}, s={threading.Lock()}, k={threading.Lock(): 1})
    assert repr(got["x"]) == "{'lock': <x['lock']: _thread.lock not kept>, 'n': 1}"
    assert {**got["x"]}["n"] == 1
    assert len(got["s"]) == 1
    assert list(got["k"].values()) == [1]
    assert copy.deepcopy(got["x"])["lock"] is got["x"]["lock"]


def test_a_lost_thing_stays_lost_when_it_is_stored_again() -> None:
    got, _ = stored(x=[threading.Lock()])
    again, lost = stored(x=got["x"])
    assert lost == {}
    with pytest.raises(UnpicklableVariableError, match=r"x\[0\]"):
        again["x"][0]()


def test_a_lost_thing_does_not_count_as_a_change() -> None:
    value = [threading.Lock(), 1]
    (one,), (other,) = (encode({"x": value}, allow=ALLOW) for _ in range(2))
    assert fingerprint(one) == fingerprint(other)


def test_what_is_nested_too_deeply_is_lost_and_what_shares_with_it_is_not() -> None:
    deep: list[Any] = []
    shared = [1]
    for _ in range(50_000):
        deep = [deep, shared]
    got, lost = stored(a=deep, b={"k": shared}, c=2)
    assert list(lost) == ["a"]
    assert "deeply" in lost["a"][0].reason
    assert (got["b"], got["c"]) == ({"k": [1]}, 2)
    while deep:  # taken apart from the outside: this interpreter recurses where it is freed
        deep = deep[0]


def test_a_variable_that_is_a_lost_thing_of_another_is_named() -> None:
    lock = threading.Lock()
    _, lost = stored(a=lock, b=lock)
    assert {name: each[0].path for name, each in lost.items()} == {"a": "a", "b": "b"}


def test_a_column_that_cannot_be_kept_loses_its_frame_and_no_more() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame["c"] = pd.Series([1], dtype="category")
    categories = frame["c"].cat.categories
    got, lost = stored(x=[frame, 1], y=categories)
    assert lost == {}
    frame.attrs["lock"] = threading.Lock()
    got, lost = stored(x=[frame, 1])
    assert [each.type for each in lost["x"]] == ["_thread.lock"]
    assert got["x"][0]["a"][0] == 1


def test_an_unknown_extension_array_loses_its_frame_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from agex.values.adapters import pandas_frames as frames

    monkeypatch.delitem(frames._BY_NAME, "Categorical")
    frame = pd.DataFrame({"c": pd.Categorical(["a"])})
    got, lost = stored(x={"frame": frame, "n": 1})
    assert [each.type for each in lost["x"]] == [class_name(pd.Categorical)]
    assert type(got["x"]["frame"]) is NotKept
    assert got["x"]["n"] == 1
