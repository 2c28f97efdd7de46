"""Beginning and deleting branches and tags, and the branches that conflicts make."""

from __future__ import annotations

import math
import os
import pickle
from datetime import timedelta

import pytest

from agex.errors import StateConflict, StateCorrupt, StateError, StateFull
from agex.state import Disk, History, Memory, Versioned
from agex.state.commits.branches import CONFLICTS, is_conflict
from agex.state.commits.journal import Draft, HeadMoved


def conflicts(state):
    return [name for name in state.branches() if is_conflict(name)]


def in_conflict(store, count=1):
    """Let that many states lose a race; return the one that won."""
    first = Versioned(store)
    first["n"] = 0
    first.commit()
    losers = [Versioned(store) for _ in range(count)]
    first["n"] = 1
    first.commit()
    for number, loser in enumerate(losers):
        loser["n"] = 10 + number
        with pytest.raises(StateConflict):
            loser.commit()
    return first, losers


# -- every journal -------------------------------------------------------------------------------


def drafted(journal, branch, expect=None, **changes):
    payloads = {key: value.encode() for key, value in changes.items()}
    draft = Draft(parents=(expect,) if expect else (), changes=payloads, time=1.0)
    return journal.commit(draft, branch=branch, expect=expect)


def test_a_deleted_branch_is_gone_for_every_reader_and_can_be_begun_again(journals):
    journal, other = journals(), journals()
    kept = drafted(journal, "main", a="1")
    gone = drafted(journal, "side", a="2")
    with pytest.raises(HeadMoved):
        journal.move("side", None, expect=kept)
    journal.move("side", None, expect=gone)
    assert journal.branches() == other.branches() == {"main": kept}
    with pytest.raises(StateError, match="no branch, tag or commit 'side'"):
        other.resolve("side")
    assert other.gc().commits == 1
    again = drafted(other, "side", a="3")
    assert journal.branches() == {"main": kept, "side": again}
    assert journal.fsck() == []


def test_a_deleted_tag_is_gone_for_every_reader_and_may_be_given_again(journals):
    journal, other = journals(), journals()
    first = drafted(journal, "main", a="1")
    second = drafted(journal, "main", first, a="2")
    journal.tag("good", first)
    other.untag("good")
    assert journal.tags() == other.tags() == {}
    with pytest.raises(StateError, match="no tag 'good'"):
        journal.untag("good")
    journal.tag("good", second)
    assert other.tags() == {"good": second}
    with pytest.raises(StateError, match="given to commit"):
        other.tag("good", first)
    assert journal.fsck() == []


# -- deleting ------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    store = Memory() if request.param == "memory" else Disk(tmp_path / "store", durable=False)
    yield store
    store.close()


def test_a_deleted_branch_frees_its_commits(store):
    state = Versioned(store)
    state["x"] = 1
    state.commit()
    other = state.fork("other")
    other["x"] = 2
    lost = other.commit()
    state.delete_branch("other")
    assert list(state.branches()) == ["main"]
    assert state.checkout(lost)["x"] == 2, "until the collector comes"
    assert state.gc().commits == 1
    with pytest.raises(StateError):
        state.checkout(lost)
    assert state.fsck() == []


def test_a_deleted_tag_frees_its_commit(store):
    state = Versioned(store)
    state["x"] = 1
    first = state.commit()
    state["x"] = 2
    second = state.commit()
    state.tag("second")
    state.reset(first)
    assert state.gc().commits == 0
    state.delete_tag("second")
    assert state.tags() == {}
    assert state.gc().commits == 1
    with pytest.raises(StateError):
        state.checkout(second)


def test_a_branch_that_cannot_be_deleted_says_why(store):
    state = Versioned(store)
    with pytest.raises(StateError, match=r"no branch 'main'.*it has none yet"):
        state.delete_branch("main")
    state["x"] = 1
    state.commit()
    with pytest.raises(StateError, match="the last one"):
        state.delete_branch("main")
    state.fork("other")
    with pytest.raises(StateError, match="stands on it"):
        state.delete_branch("main")
    with pytest.raises(StateError, match=r"no branch 'oter'.*there are 'main', 'other'"):
        state.delete_branch("oter")
    with pytest.raises(StateError, match="no tag 'main'"):
        state.delete_tag("main")
    assert list(state.branches()) == ["main", "other"]


def test_a_state_whose_branch_was_deleted_under_it_loses_nothing(store):
    state = Versioned(store)
    state["x"] = 1
    state.commit()
    other = state.fork("other")
    state.delete_branch("other")
    other["x"] = 2
    with pytest.raises(StateConflict, match="it is gone") as caught:
        other.commit()
    (side,) = conflicts(state)
    assert side in str(caught.value)
    assert state.checkout(side)["x"] == 2


def test_a_full_store_has_room_again_after_what_its_error_advises(tmp_path):
    state = Versioned(Disk(tmp_path / "store", size_limit=600_000, durable=False))
    state["x"] = 1
    state.commit()
    other = state.fork("other")
    other["large"] = os.urandom(300_000)
    other.commit()
    state["large"] = os.urandom(300_000)
    with pytest.raises(StateFull, match="delete branches and call `gc"):
        state.commit()
    state.delete_branch("other")
    state.gc()
    state.commit()
    assert len(Versioned(state.store)["large"]) == 300_000
    state.close()


# -- conflicts -----------------------------------------------------------------------------------


def test_the_branches_of_conflicts_are_named_as_such(store):
    _, (loser,) = in_conflict(store)
    (side,) = conflicts(loser)
    assert side.startswith(f"{CONFLICTS}main-")
    opened = Versioned(store, branch=side)
    assert opened["n"] == 10
    assert not is_conflict(opened.fork().branch)


@pytest.mark.parametrize("age", [0, 0.0, timedelta(0)])
def test_the_collector_drops_the_branches_of_conflicts(store, age):
    state, _ = in_conflict(store, 5)
    mine = state.fork("mine")
    assert state.gc().branches == 0
    assert len(conflicts(state)) == 5
    assert state.gc(conflicts_older_than=3600).branches == 0
    assert state.gc(conflicts_older_than=timedelta(days=1)).branches == 0
    gone = state.gc(conflicts_older_than=age)
    assert (gone.branches, gone.commits) == (5, 5)
    assert list(state.branches()) == ["main", mine.branch]
    assert state.fsck() == []


def test_a_state_keeps_the_side_branch_that_it_is_on(store):
    _, (first, second) = in_conflict(store, 2)
    assert first.gc(conflicts_older_than=0).branches == 1
    (side,) = conflicts(first)
    assert first.checkout(side)["n"] == 10
    with pytest.raises(StateError, match="stands on it"):
        first.delete_branch(side)
    first.reset("main")
    assert first.gc(conflicts_older_than=0).branches == 1
    assert conflicts(second) == []


def test_a_state_whose_side_branch_was_collected_says_so_and_keeps_its_variables(store):
    winner, (loser,) = in_conflict(store)
    winner.gc(conflicts_older_than=0)
    loser["n"] = 99
    with pytest.raises(StateError, match="no commit"):
        loser.commit()
    assert loser["n"] == 99
    loser.reset("main")
    assert loser["n"] == 1


def test_a_side_branch_that_was_deleted_and_not_collected_goes_on_on_another(store):
    winner, (loser,) = in_conflict(store)
    (side,) = conflicts(winner)
    winner.delete_branch(side)
    loser["n"] = 99
    with pytest.raises(StateConflict):
        loser.commit()
    (side,) = conflicts(winner)
    assert winner.checkout(side)["n"] == 99


def test_the_last_branch_stays_also_where_a_conflict_made_it():
    state, (loser,) = in_conflict(Memory())
    (side,) = conflicts(state)
    last = Versioned(state.store, branch=side)
    last.delete_branch("main")
    assert Versioned(state.store, branch="main", create=True).gc(conflicts_older_than=0).branches == 0
    assert list(loser.branches()) == [side]


@pytest.mark.parametrize("age", [-1, timedelta(days=-1), math.nan, math.inf, True, "30d"])
def test_what_is_no_length_of_time_is_refused(age):
    state, _ = in_conflict(Memory())
    with pytest.raises(StateError, match="no length of time"):
        state.gc(conflicts_older_than=age)
    assert len(conflicts(state)) == 1


@pytest.mark.parametrize("empty", [True, False])
def test_nobody_begins_a_branch_with_the_name_of_a_conflict(empty):
    state = Versioned()
    if not empty:
        state["x"] = 1
        state.commit()
    with pytest.raises(StateError, match="names of conflicts"):
        state.fork("conflict/mine")
    with pytest.raises(StateError, match="names of conflicts"):
        Versioned(state.store, branch="conflict/mine", create=True)


# -- beginning -----------------------------------------------------------------------------------


def test_a_branch_that_is_not_there_is_not_begun_by_a_typing_mistake(store):
    state = Versioned(store, branch="first")  # an empty store has no other that could be meant
    state["x"] = 1
    state.commit()
    state.fork("second")
    with pytest.raises(StateError, match=r"no branch 'frist'.*there are 'first', 'second'.*create=True"):
        Versioned(store, branch="frist")
    with pytest.raises(StateError, match="no branch 'main'"):
        Versioned(store)
    assert list(state.branches()) == ["first", "second"]
    new = Versioned(store, branch="third", create=True)
    assert (dict(new), new.head) == ({}, None)
    assert Versioned(store, branch="first", create=True)["x"] == 1, "and where it is, it is opened"


def test_a_state_on_a_branch_without_commits_can_be_sent_elsewhere(tmp_path):
    store = Disk(tmp_path / "store", durable=False)
    state = Versioned(store)
    state["x"] = 1
    state.commit()
    new = Versioned(store, branch="new", create=True)
    there = pickle.loads(pickle.dumps(new))
    there["y"] = 2
    there.commit()
    assert dict(Versioned(store, branch="new")) == {"y": 2}
    moved = pickle.dumps(state)
    new = Versioned(store, branch="new")
    new.delete_branch("main")
    with pytest.raises(StateError, match="no branch 'main'"):
        pickle.loads(moved)
    there.close()
    store.close()


# -- the history is a sequence -------------------------------------------------------------------


@pytest.fixture
def counted(store):
    state = Versioned(store)
    for number in range(5):
        state["n"] = number
        state.commit(f"n is {number}")
    return state


READS = {
    "the newest": lambda found: found[0],
    "the oldest": lambda found: found[-1],
    "one in the middle": lambda found: found[3],
    "the newest two": lambda found: found[:2],
    "the oldest two": lambda found: found[-2:],
    "all but the ends": lambda found: found[1:-1],
    "every other": lambda found: found[::2],
    "backwards": lambda found: found[::-1],
    "backwards from one": lambda found: found[3:0:-1],
    "past the end": lambda found: found[3:99],
    "nothing": lambda found: found[9:],
    "how many": len,
    "turned round": lambda found: list(reversed(found)),
    "twice": lambda found: [*found, *found],
    "where one is": lambda found: found.index(found[2]),
    "whether any": bool,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_the_history_is_read_as_a_list_is(counted, read):
    def told(found):
        return [one.message for one in found] if isinstance(found, list) else getattr(found, "message", found)

    history = counted.history()
    expected = list(counted.history())
    assert len(expected) == 5
    assert told(read(history)) == told(read(expected))
    assert told(read(history)) == told(read(expected)), "and again"
    with pytest.raises(IndexError):
        history[5]
    with pytest.raises(IndexError):
        history[-6]


def test_a_history_holds_commits_and_their_hashes(counted):
    history = counted.history()
    assert counted.head in history
    assert history[2] in history
    assert "0" * 64 not in history
    assert Versioned().history()[:] == []


def test_a_history_reads_no_more_than_it_is_asked_for(counted, monkeypatch):
    read = []
    journal = counted._journal
    history = journal.history
    monkeypatch.setattr(journal, "history", lambda at: (read.append(one) or one for one in history(at)))
    found = counted.history()
    assert (found[0].message, len(read)) == ("n is 4", 1)
    assert [one.message for one in found[1:3]] == ["n is 3", "n is 2"]
    assert len(read) == 3
    assert (len(found), len(found), len(read)) == (5, 5, 5)


def test_a_history_that_cannot_be_read_on_does_not_seem_to_end():
    def begin():
        yield 2
        yield 1
        raise StateCorrupt("damaged")

    history = History(begin, lambda record: record, dict)
    for _ in range(2):
        with pytest.raises(StateCorrupt):
            len(history)
        with pytest.raises(StateCorrupt):
            list(history)
        assert history[1] == 1
