"""A versioned state as the host sees it: a mapping with a history."""

from __future__ import annotations

import os
import threading

import pytest

from agex import values
from agex.errors import StateConflict, StateCorrupt, StateError, StateFull, UnpicklableVariableError
from agex.state import Disk, Memory, Versioned


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    store = Memory() if request.param == "memory" else Disk(tmp_path / "store")
    yield store
    store.close()


def again(state):
    """Open the same store as another process would."""
    return Versioned(state.store, branch=state.branch)


def test_it_is_a_mapping(store):
    state = Versioned(store)
    state["x"] = 1
    state.update(y=[2], z="three")
    del state["x"]
    assert dict(state) == {"y": [2], "z": "three"}
    assert "y" in state
    assert "x" not in state
    assert len(state) == 2
    with pytest.raises(KeyError):
        state["x"]
    with pytest.raises(KeyError):
        del state["x"]


def test_a_name_that_no_variable_can_have_is_refused():
    with pytest.raises(StateError, match="my_key"):
        Versioned()["my key"] = 1


def test_what_is_committed_is_there_when_opened_again(store):
    state = Versioned(store)
    state["x"] = {"a": [1, 2]}
    commit = state.commit("first")
    assert (state.head, again(state).head) == (commit, commit)
    assert again(state)["x"] == {"a": [1, 2]}
    assert list(again(state)) == ["x"]


def test_what_is_not_committed_is_not_kept(store):
    state = Versioned(store)
    state["x"] = 1
    state.commit()
    state["x"] = 2
    assert again(state)["x"] == 1


def test_a_change_in_place_is_found(store):
    state = Versioned(store)
    state["rows"] = [{"n": 1}]
    state.commit()
    state["rows"][0]["n"] = 2
    state.commit()
    opened = again(state)
    assert opened["rows"] == [{"n": 2}]
    opened["rows"].append(3)
    opened.commit()
    assert again(state)["rows"] == [{"n": 2}, 3]


def test_a_deletion_is_a_change(store):
    state = Versioned(store, branch="b")
    state["x"], state["y"] = 1, 2
    state.commit()
    del state["x"]
    state.commit()
    assert list(again(state)) == ["y"]


def test_none_is_a_value(store):
    state = Versioned(store)
    state["x"] = None
    state.commit()
    assert again(state)["x"] is None
    assert "x" in again(state)


def test_nothing_changed_makes_no_commit(store):
    state = Versioned(store)
    state["x"], state["names"] = [1], {"b", "a"}
    first = state.commit()
    state["x"] = [1]
    assert again(state).commit() == first
    assert state.commit() == first


def test_variables_that_share_an_object_still_share_it(store):
    state = Versioned(store)
    shared = [1]
    state["a"], state["b"], state["alone"] = {"k": shared}, (shared, 2), 3
    state.commit()
    opened = again(state)
    assert opened["a"]["k"] is opened["b"][0]
    opened["a"]["k"].append(2)
    opened.commit()
    opened = again(state)
    assert opened["b"] == ([1, 2], 2)
    del opened["a"]
    opened.commit()
    assert dict(again(state)) == {"b": ([1, 2], 2), "alone": 3}


def test_objects_are_shared_from_a_later_commit_on(store):
    state = Versioned(store)
    state["a"] = [1]
    state.commit()
    opened = again(state)
    opened["b"] = opened["a"]
    opened.commit()
    opened = again(state)
    assert opened["a"] is opened["b"]
    opened["b"] = [5]
    opened.commit()
    assert dict(again(state)) == {"a": [1], "b": [5]}


def test_the_cache_is_kept(store):
    state = Versioned(store)
    state.cache["k"] = [1]
    state.commit()
    opened = again(state)
    opened.cache["k"].append(2)
    opened.commit()
    assert again(state).cache == {"k": [1, 2]}
    assert "cache" not in again(state)


# -- history ---------------------------------------------------------------------------------


def filled(store, *values):
    state = Versioned(store)
    commits = []
    for value in values:
        state["x"] = value
        commits.append(state.commit(f"x is {value}"))
    return state, commits


def test_the_history_lists_commits_newest_first(store):
    state, commits = filled(store, 1, 2, 3)
    found = list(state.history())
    assert [one.hash for one in found] == commits[::-1]
    assert [one.parent for one in found] == [commits[1], commits[0], None]
    assert found[0].message == "x is 3"
    assert found[0].time >= found[2].time > 1e9


def test_a_checkout_is_a_view_of_then(store):
    state, commits = filled(store, 1, 2)
    then = state.checkout(commits[0])
    assert (dict(then), then.cache, list(then.events)) == ({"x": 1}, {}, [])
    assert then.commit.hash == commits[0]
    assert state["x"] == 2
    with pytest.raises(TypeError):
        then["x"] = 5
    assert state.checkout("main")["x"] == 2
    assert state.checkout(commits[0][:8])["x"] == 1


def test_a_commit_stands_where_its_hash_does(store):
    state, (first, _) = filled(store, 1, 2)
    newest, oldest = state.history()
    assert state.checkout(oldest)["x"] == 1
    assert state.checkout(first).commit == first == oldest
    assert {oldest: "first"}[first] == "first"
    assert list(state.diff(oldest, newest)) == ["x"]
    assert str(oldest) == first


def test_what_is_done_to_a_checkout_changes_nothing(store):
    state, (first, _) = filled(store, [1], [2])
    state.checkout(first)["x"].append(9)
    assert state.checkout(first)["x"] == [1]


def test_a_ref_that_is_not_there_is_an_error(store):
    state, _ = filled(store, 1)
    with pytest.raises(StateError, match="nowhere"):
        state.checkout("nowhere")


def test_a_diff_names_what_changed_and_shows_what_is_small(store):
    state = Versioned(store)
    state["same"], state["n"], state["gone"] = 1, 3, [1]
    first = state.commit()
    state["n"], state["new"] = 4, "text"
    del state["gone"]
    second = state.commit()
    found = state.diff(first, second)
    assert list(found) == ["gone", "n", "new"]
    assert (set(found.added), set(found.removed)) == ({"new"}, {"gone"})
    assert found.changed["n"] == "3 -> 4"
    assert "~ n: 3 -> 4" in str(found)


def test_a_diff_finds_what_changed_through_a_shared_object(store):
    state = Versioned(store)
    state["a"] = [1]
    state["b"] = {"k": state["a"]}
    first = state.commit()
    state["a"].append(2)
    assert list(state.diff(first, state.commit())) == ["a", "b"]


def test_a_fork_goes_its_own_way(store):
    state, (first, second) = filled(store, 1, 2)
    other = state.fork("other", at=first)
    other["x"] = 10
    other.commit()
    assert (state["x"], again(state)["x"], Versioned(store, branch="other")["x"]) == (2, 2, 10)
    assert state.branches() == {"main": second, "other": other.head}
    unnamed = state.fork()
    assert unnamed.branch not in {"main", "other"}
    assert unnamed["x"] == 2
    with pytest.raises(StateError, match="other"):
        state.fork("other")


def test_a_tag_names_a_commit(store):
    state, (first, _) = filled(store, 1, 2)
    state.tag("good", first)
    assert state.checkout("good")["x"] == 1
    assert state.tags() == {"good": first}
    with pytest.raises(StateError):
        state.tag("good")


def test_a_reset_goes_back_and_the_commits_stay(store):
    state, (first, second) = filled(store, 1, 2)
    state["y"] = "not committed"
    state.reset(first)
    assert (dict(state), state.head, again(state).head) == ({"x": 1}, first, first)
    assert state.checkout(second)["x"] == 2


def test_a_merge_takes_what_only_the_other_changed(store):
    state, _ = filled(store, 1)
    state["kept"] = [1]
    state.commit()
    other = state.fork("other")
    other["x"], other["new"] = 5, "there"
    del other["kept"]
    other.commit()
    state["mine"] = 7
    state.commit()
    merged = state.merge(other)
    assert dict(state) == dict(again(state)) == {"x": 5, "new": "there", "mine": 7}
    assert state.head == merged
    assert next(iter(state.history())).merged == (other.head,)
    assert state.merge(other) == merged, "nothing is left to merge"


def test_a_merge_of_two_changes_of_one_variable_is_a_conflict(store):
    state, _ = filled(store, 1)
    other = state.fork("other")
    other["x"] = 2
    other.commit()
    state["x"] = 3
    before = state.commit()
    with pytest.raises(StateConflict, match="x"):
        state.merge("other")
    assert (state.head, state["x"]) == (before, 3)


# -- what cannot be kept -----------------------------------------------------------------------


def test_what_cannot_be_kept_is_usable_until_then_and_says_so_later(store):
    state = Versioned(store)
    state["lock"], state["rows"] = threading.Lock(), [1, threading.Lock(), 3]
    state.commit()
    assert not state["lock"].locked()
    opened = again(state)
    with pytest.raises(UnpicklableVariableError, match=r"lock.*_thread\.lock"):
        opened["lock"]
    assert (opened["rows"][0], opened["rows"][2]) == (1, 3)
    with pytest.raises(UnpicklableVariableError, match="rows"):
        opened["rows"][1].acquire()


def test_what_could_not_be_kept_stays_so_in_later_commits(store):
    state = Versioned(store)
    state["rows"] = [threading.Lock(), 1]
    state.commit()
    opened = again(state)
    opened["rows"].append(2)
    opened.commit()
    assert again(state)["rows"][1:] == [1, 2]


# -- many writers ------------------------------------------------------------------------------


def test_of_two_writers_the_second_is_told_and_loses_nothing(store):
    state, _ = filled(store, 0)
    first, second = again(state), again(state)
    first["x"] = 1
    first.commit()
    second["x"] = 2
    with pytest.raises(StateConflict) as caught:
        second.commit()
    side = next(name for name in second.branches() if name != "main")
    assert side in str(caught.value)
    assert (second.checkout("main")["x"], second.checkout(side)["x"]) == (1, 2)
    second.reset("main")
    second["x"] = 3
    second.commit()
    assert again(state)["x"] == 3


def test_counting_in_many_threads_with_retries_loses_nothing(store):
    state, _ = filled(store, 0)

    def count():
        mine = again(state)
        for _ in range(10):
            while True:
                mine["x"] += 1
                try:
                    mine.commit()
                    break
                except StateConflict:
                    mine.reset("main")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert again(state)["x"] == 40


def test_fsck_finds_nothing_and_gc_keeps_what_is_reached(store):
    state, (first, second) = filled(store, list(range(9)), list(range(99)))
    state.reset(first)
    assert state.fsck() == []
    assert state.gc().commits == 1
    assert state["x"] == list(range(9))
    with pytest.raises(StateError):
        state.checkout(second)
    assert state.fsck() == []


def test_a_commit_that_does_not_fit_is_refused_and_loses_nothing(tmp_path):
    state = Versioned(Disk(tmp_path / "store", size_limit=300_000))
    state["x"] = 1
    first = state.commit()
    state["large"] = os.urandom(500_000)
    with pytest.raises(StateFull):
        state.commit()
    assert (state.head, len(state["large"])) == (first, 500_000)
    del state["large"]
    state["y"] = 2
    state.commit()
    assert dict(again(state)) == {"x": 1, "y": 2}
    state.close()


def test_a_damaged_value_is_never_answered_from(tmp_path):
    store = Disk(tmp_path / "store")
    state = Versioned(store)
    state["large"] = os.urandom(100_000)
    state.commit()
    state.close()
    (pack,) = [each for each in (tmp_path / "store").iterdir() if each.name.startswith("pack")]
    data = bytearray(pack.read_bytes())
    data[50_000] ^= 1
    pack.write_bytes(data)
    opened = Versioned(Disk(tmp_path / "store"))
    with pytest.raises(StateCorrupt):
        opened["large"]
    assert opened.fsck() != []
    opened.close()


def test_a_group_is_read_once_to_show_all_its_variables(store, monkeypatch):
    state = Versioned(store)
    shared = [1]
    state.update({f"v{number}": [shared, number] for number in range(9)})
    state.commit()
    read = []
    opened = values.opened
    monkeypatch.setattr(values, "opened", lambda *args, **kwargs: read.append(1) or opened(*args, **kwargs))
    again = Versioned(store)
    assert [again.sketch(f"v{number}") for number in range(9)] == [[[1], number] for number in range(9)]
    assert len(read) == 1
