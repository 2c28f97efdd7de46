"""Variables that are stored whole, or damaged, and cannot be read again: only they are affected."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass

import pytest

from agex.display import Table
from agex.errors import StateCorrupt, UnpicklableVariableError
from agex.state import Disk, Memory, Versioned
from agex.state.tables import UNREADABLE
from agex.values import NotKept


@dataclass
class Point:
    """A class of the host, whose instances are read only where it is named."""

    x: int


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    store = Memory() if request.param == "memory" else Disk(tmp_path / "store")
    yield store
    store.close()


def filled(store, **variables):
    """Keep variables, some of which hold points, and open the state where points cannot be read."""
    state = Versioned(store, classes=[Point])
    state.update(variables)
    state.commit()
    return Versioned(store)


def sharing():
    """Give three variables that are stored as one."""
    shared = [1]
    return {"a": shared, "b": [shared, Point(2)], "c": [shared]}


def test_reading_a_variable_that_cannot_be_read_names_it_and_the_reason(store):
    state = filled(store, x=Point(1), keep=41)
    for held in (state, state.checkout("main")):
        with pytest.raises(UnpicklableVariableError, match=r"'x' is stored, but cannot be read.*Point"):
            held["x"]
        assert held["keep"] == 41
        assert sorted(held) == ["keep", "x"]


def test_it_is_read_again_where_it_can_be(store):
    state = filled(store, x=Point(1))
    with pytest.raises(UnpicklableVariableError):
        state["x"]
    state["y"] = 1
    state.commit()
    assert dict(Versioned(store, classes=[Point])) == {"x": Point(1), "y": 1}
    state.admit([Point], None)
    assert state["x"] == Point(1)


@pytest.mark.parametrize("packed", [False, True])
def test_a_task_is_given_a_marker_in_its_place_which_is_not_written_over_it(store, packed):
    state = filled(store, x=Point(1), keep=[41])
    before = state.snapshot(packed=packed)
    assert {name: type(value) for name, value in before.items()} == {"keep": list, "x": NotKept}
    with pytest.raises(UnpicklableVariableError, match=r"(?s)Variable 'x' .*cannot be read again.*Point"):
        before["x"].attribute  # noqa: B018
    before["keep"].append(42)
    state.write_back(before, {**before, "new": 1})
    state.settle("an action", last=True)
    assert dict(Versioned(store, classes=[Point])) == {"x": Point(1), "keep": [41, 42], "new": 1}


def test_a_task_may_delete_it_or_bind_its_name_anew(store):
    state = filled(store, x=Point(1), y=Point(2), keep=41)
    before = state.snapshot()
    state.write_back(before, {"y": 3, "keep": before["keep"]})
    state.settle("an action")
    assert dict(Versioned(store)) == {"y": 3, "keep": 41}


def test_the_host_deletes_it_or_gives_it_another_value(store):
    state = filled(store, x=Point(1), y=Point(2), keep=41)
    del state["x"]
    state["y"] = 3
    assert dict(state) == {"y": 3, "keep": 41}
    state.commit()
    assert dict(state) == dict(Versioned(store)) == {"y": 3, "keep": 41}
    with pytest.raises(KeyError):
        del state["x"]


@pytest.mark.parametrize("name", ["a", "b", "c"])
@pytest.mark.parametrize("how", ["deleted", "bound anew"])
def test_what_was_stored_with_it_stays_as_it_is(store, name, how):
    state = filled(store, **sharing(), keep=41)
    others = sorted({"a", "b", "c"} - {name})
    if how == "deleted":
        del state[name]
    else:
        state[name] = 1
    state.commit()
    there = Versioned(store)
    for other in others:
        with pytest.raises(UnpicklableVariableError, match=f"'{other}' is stored.*Point"):
            there[other]
    assert type(there.snapshot()[others[0]]) is NotKept
    whole = Versioned(store, classes=[Point])
    was = {**sharing(), "keep": 41} | {name: 1}
    if how == "deleted":
        del was[name]
    assert dict(whole) == was
    shared = {"a": lambda value: value, "b": lambda value: value[0], "c": lambda value: value[0]}
    first, second = (shared[other](whole[other]) for other in others)
    assert first is second
    whole["keep"] = 42
    whole.commit()
    assert dict(Versioned(store, classes=[Point])) == {**was, "keep": 42}
    assert whole.fsck() == []


def test_several_that_were_stored_together_are_given_up_one_after_another(store):
    state = filled(store, **sharing(), keep=41)
    del state["a"]
    state["b"] = "new"
    state.commit()
    state["c"] = "newer"
    state.commit()
    assert dict(Versioned(store)) == {"b": "new", "c": "newer", "keep": 41}
    state.reset(list(state.history())[-1])
    del state["a"], state["b"], state["c"]
    state.commit()
    assert dict(Versioned(store)) == {"keep": 41}


def test_a_cache_that_cannot_be_read_is_a_marker_until_the_host_gives_it_up(store):
    state = Versioned(store, classes=[Point])
    state.cache["k"] = Point(1)
    state["x"] = 1
    state.commit()
    state = Versioned(store)
    for cache in (state.cache, state.packed_cache()):
        assert type(cache) is NotKept
        with pytest.raises(UnpicklableVariableError, match=r"write_cache\(\{\}\)"):
            cache["k"]
    state["x"] = 2
    state.commit()
    assert Versioned(store, classes=[Point]).cache == {"k": Point(1)}
    state.write_cache({})
    state.cache["n"] = 1
    state.commit()
    assert Versioned(store).cache == {"n": 1}


def test_a_page_shows_what_cannot_be_read_and_goes_on(store):
    first = Versioned(store, classes=[Point])
    first.cache["k"] = Point(1)
    first.update(x=Point(1), keep=41)
    first.commit()
    state = Versioned(store)
    for shown in (state, state.checkout("main")):
        tables = [part for part in shown.page().parts if isinstance(part, Table)][:2]
        assert [row for table in tables for row in table.rows] == [
            *(("keep", "int", "41"), ("x", "", UNREADABLE)),
            ("", "", UNREADABLE),
        ]


def test_a_difference_names_it_without_its_value(store):
    state = filled(store, x=Point(1), keep=41)
    del state["x"]
    state.commit()
    first, second = reversed([one.hash for one in state.history()])
    assert sorted(state.diff(None, first).added) == ["keep", "x"]
    assert sorted(state.diff(first, second).removed) == ["x"]


def test_a_merge_that_would_take_it_says_so_and_takes_nothing(store):
    state = filled(store, keep=41)
    side = Versioned(store, classes=[Point]).fork("side")
    side.update(a=1, x=Point(1))
    side.commit()
    head = state.head
    with pytest.raises(UnpicklableVariableError, match="'x'"):
        state.merge("side")
    assert state.commit() == head
    assert dict(state) == {"keep": 41}


# -- damage --------------------------------------------------------------------------------------


def damaged(tmp_path, **variables):
    """Keep variables of which one has a large value, which is damaged."""
    state = Versioned(Disk(tmp_path / "store"))
    state.update(variables)
    state.commit()
    state.close()
    (pack,) = (tmp_path / "store").glob("pack*")
    data = bytearray(pack.read_bytes())
    data[50_000] ^= 1
    pack.write_bytes(data)
    return Versioned(Disk(tmp_path / "store"))


def test_a_task_does_not_start_on_damaged_bytes(tmp_path):
    with contextlib.closing(damaged(tmp_path, x=os.urandom(100_000), keep=41)) as state:
        assert state["keep"] == 41
        with pytest.raises(StateCorrupt):
            state.snapshot()


@pytest.mark.parametrize("how", ["deleted", "bound anew"])
def test_a_damaged_variable_that_the_host_names_is_given_up_and_the_damage_is_still_said(tmp_path, how):
    with contextlib.closing(damaged(tmp_path, x=os.urandom(100_000), keep=41)) as state:
        if how == "deleted":
            del state["x"]
        else:
            state["x"] = 1
        state.commit()
        assert dict(state) == dict(Versioned(state.store)) == state.snapshot()
        assert dict(state) == ({"keep": 41} if how == "deleted" else {"keep": 41, "x": 1})
        assert state.fsck() != []


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_what_is_stored_with_a_damaged_variable_stays_damaged(tmp_path, name):
    shared = [os.urandom(100_000)]
    with contextlib.closing(damaged(tmp_path, a=shared, b=[shared], c=[shared], keep=41)) as state:
        del state[name]
        state.commit()
        there = Versioned(state.store)
        for other in {"a", "b", "c"} - {name}:
            with pytest.raises(StateCorrupt):
                there[other]
            with pytest.raises(StateCorrupt):
                there.snapshot()
            there[other] = 1
        there.commit()
        new = dict.fromkeys({"a", "b", "c"} - {name}, 1)
        assert dict(Versioned(state.store)) == {**new, "keep": 41}


def test_a_chunk_that_is_gone_keeps_nobody_from_giving_its_variable_up():
    store = Memory()
    state = Versioned(store)
    shared = [os.urandom(100_000)]
    state.update(a=shared, b=[shared], keep=41)
    state.commit()
    for key in [key for key in store.keys() if "/k/" in key]:  # noqa: SIM118 - a store is no dict
        store.remove(key)
    del (there := Versioned(store))["a"]
    there.commit()
    there["b"] = 1
    there.commit()
    assert dict(Versioned(store)) == {"b": 1, "keep": 41}


def test_a_damaged_row_of_a_variable_that_is_given_up_is_still_said(tmp_path):
    for number, how in enumerate(("deleted", "bound anew")):
        path = tmp_path / str(number)
        state = Versioned(Disk(path))
        state.update(x=[1, 2, 3], keep=41)
        state.commit()
        state.close()
        with contextlib.closing(sqlite3.connect(path / "state.db")) as db, db:
            changed = db.execute("UPDATE rows SET payload = ? WHERE key = ?", (b"=no", b"v/x"))
            assert changed.rowcount == 1
        with contextlib.closing(Versioned(Disk(path))) as state:
            with pytest.raises(StateCorrupt):
                state["x"]
            if how == "deleted":
                del state["x"]
            else:
                state["x"] = 1
            state.commit()
            assert dict(Versioned(state.store)) == (
                {"keep": 41} if how == "deleted" else {"keep": 41, "x": 1}
            )
            assert state.fsck() != []
