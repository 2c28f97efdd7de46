"""A connection that is lost at any moment of a commit: what is stored is found out, and is no conflict."""

from __future__ import annotations

import itertools
import re

import pytest
from proxy import proxy_before

from agex.errors import StateConflict, StateError
from agex.state import Memory, Versioned
from agex.state.commits.branches import is_conflict
from agex.state.commits.journal import Draft, HeadMoved
from agex.state.kv.store import swap

_numbers = itertools.count()


@pytest.fixture(params=["redis", "postgres"])
def server(request):
    """Give a proxy before a real server, and two ways to open the same store: past it, and through it."""
    number = next(_numbers)
    if request.param == "redis":
        from agex.state.redis import RedisStore

        url = request.getfixturevalue("redis_url")
        port = int(re.search(r":(\d+)/", url)[1])

        def opened(at):
            return RedisStore(url.replace(f":{port}/", f":{at}/"), prefix=f"lost{number}:")
    else:
        from agex.state.postgres import PostgresStore

        dsn = request.getfixturevalue("postgres_dsn")
        port = int(re.search(r"port=(\d+)", dsn)[1])

        def opened(at):
            # TLS would be asked for by one request more.
            through = dsn.replace(f"port={port}", f"port={at} sslmode=disable")
            return PostgresStore(through, table=f"lost{number}")

    stores = []
    with proxy_before(port) as proxy:

        def open_store(*, through):
            stores.append(opened(proxy.port if through else port))
            return stores[-1]

        yield proxy, open_store
        for store in stores:
            store.close()


def begun(open_store):
    state = Versioned(open_store(through=True))
    state["n"] = 0
    state.commit("begin")
    return state


def committed_at_last(state, message):
    """Commit until it is known to be stored; return how often that was not known."""
    for failed in range(5):
        try:
            state.commit(message)
        except StateConflict:
            raise
        except StateError:
            continue
        return failed
    raise AssertionError("it is never stored")


def requests_of_a_commit(proxy, state):
    proxy.lose(0, answered=True)
    state["n"] = -1
    state.commit("counted")
    return proxy.requests


@pytest.mark.parametrize("answered", [True, False], ids=["the answer", "the request"])
def test_a_connection_that_is_lost_at_any_request_of_a_commit_is_no_conflict(server, answered):
    proxy, open_store = server
    state = begun(open_store)
    requests = requests_of_a_commit(proxy, state)
    assert requests >= 3  # what is staged, the branch, and what is let go of
    errors = 0
    for number in range(1, requests + 3):
        state["n"] = number
        proxy.lose(number, answered=answered)
        errors += committed_at_last(state, f"n is {number}")
        proxy.mend()
        found = Versioned(open_store(through=False))
        assert (found["n"], found.head) == (number, state.head)
        assert [commit.message for commit in found.history()[:2]] == [
            f"n is {number}",
            f"n is {number - 1}" if number > 1 else "counted",
        ]
    assert errors == 0, "a server that is there again answers"
    assert list(state.branches()) == ["main"]
    assert state.fsck() == []


def test_a_server_that_is_gone_at_any_request_of_a_commit_is_an_error_and_later_no_conflict(server):
    proxy, open_store = server
    state = begun(open_store)
    requests = requests_of_a_commit(proxy, state)
    errors = 0
    numbers = range(1, requests + 1, 1 if requests < 12 else 2)  # each takes a client's patience
    for turn, number in enumerate(numbers):
        state["n"] = number
        state["last"] = [number]
        proxy.lose(number, answered=turn % 2 == 0, refuse=True)
        try:
            state.commit(f"n is {number}")
        except StateConflict:
            raise
        except StateError:
            errors += 1
        proxy.mend()
        taken_back = turn // 2 % 2  # what was not promised may be
        if taken_back:
            del state["last"]
        state.commit(f"n is {number}, again")
        found = Versioned(open_store(through=False))
        assert (dict(found), found.head) == (dict(state), state.head)
        assert ("last" in found) == (not taken_back)
    assert errors >= len(numbers) - 2, "all but what is let go of at the end"
    assert list(state.branches()) == ["main"]
    assert state.fsck() == []


@pytest.mark.parametrize("others", [0, 3])
def test_a_commit_whose_answer_was_lost_is_found_also_below_those_of_others(server, others):
    proxy, open_store = server
    state = begun(open_store)
    watcher = open_store(through=False)
    before = state.head

    def is_set():
        if Versioned(watcher).head == before:
            return False
        theirs = Versioned(watcher)
        for number in range(others):
            theirs["theirs"] = number
            theirs.commit("theirs")
        return True

    state["n"] = 5
    proxy.lose_when = is_set
    mine = state.commit("mine")
    assert proxy.lose_when is None, "it was lost"
    now = Versioned(watcher)
    assert dict(now) == {"n": 5, "theirs": others - 1} if others else {"n": 5}
    assert mine in now.history()
    assert list(now.branches()) == ["main"]
    state["n"] = 6
    if others:
        with pytest.raises(StateConflict):  # of the next commit: that is one with others
            state.commit()
    else:
        state.commit()


def test_others_that_were_first_are_a_conflict_whichever_answer_is_lost(server):
    proxy, open_store = server
    past = open_store(through=False)
    for lost in range(1, 9):
        state = begun(open_store) if lost == 1 else Versioned(open_store(through=True))
        answers = iter(range(1, 1000))

        def other_is_first(lost=lost, answers=answers):
            answer = next(answers)
            if answer == 1:
                theirs = Versioned(past)
                theirs["n"] = 100 + lost
                theirs.commit()
            return answer == lost

        state["n"] = lost
        proxy.lose_when = other_is_first
        with pytest.raises(StateConflict):
            committed_at_last(state, "mine")
        proxy.mend()
        assert Versioned(past)["n"] == 100 + lost
        held = [state.checkout(name)["n"] for name in state.branches() if is_conflict(name)]
        assert lost in held


@pytest.mark.parametrize("refuse", [False, True], ids=["for a moment", "for a while"])
def test_a_reset_a_tag_and_a_deletion_find_out_too(server, refuse):
    proxy, open_store = server
    state = begun(open_store)
    first = state.head
    changes = {
        "reset": lambda number: state.reset(first),
        "tag": lambda number: f"t{number}" in state.tags() or state.tag(f"t{number}"),
        "untag": lambda number: f"t{number}" in state.tags() and state.delete_tag(f"t{number}"),
        "fork": lambda number: f"b{number}" in state.branches() or state.fork(f"b{number}"),
        "delete": lambda number: f"b{number}" in state.branches() and state.delete_branch(f"b{number}"),
    }
    for number in (2, 3) if refuse else range(1, 7):
        for change in changes.values():
            state["n"] = number
            proxy.mend()
            committed_at_last(state, "step")
            proxy.lose(number, answered=True, refuse=refuse)
            for _ in range(2):
                try:
                    change(number)
                    break
                except StateConflict:
                    raise
                except StateError:
                    proxy.mend()
            proxy.mend()
            change(number)
    assert state.tags() == {}
    assert list(state.branches()) == ["main"]
    assert state.fsck() == []


# -- the store alone ---------------------------------------------------------------------------------


class Lossy(Memory):
    """A store that loses the answers, or the requests, of some swaps."""

    def __init__(self, lost):
        super().__init__()
        self.lost = list(lost)

    def cas(self, key, value, expected):
        kind = self.lost.pop(0) if self.lost else ""
        if kind == "request":
            raise StateError("lost")
        answer = super().cas(key, value, expected)
        if kind == "answer":
            raise StateError("lost")
        return answer


@pytest.mark.parametrize(
    ("lost", "held", "expected", "found"),
    [
        ([], None, None, (True, True)),
        ([], b"other", None, (False, True)),
        (["answer"], None, None, (True, False)),
        (["request"], None, None, (True, False)),
        (["request", "answer"], None, None, (True, False)),
        (["request"], b"old", b"old", (True, False)),
        (["answer"], b"other", b"old", (False, False)),
        (["answer"], b"new", None, (True, False)),
    ],
)
def test_a_swap_whose_answer_is_lost_looks_what_became_of_it(lost, held, expected, found):
    store = Lossy(lost)
    if held is not None:
        store.set("key", held)
    assert swap(store, "key", b"new", expected) == found


def test_a_swap_that_never_comes_through_is_an_error():
    store = Lossy(["request"] * 9)
    with pytest.raises(StateError, match="lost"):
        swap(store, "key", b"new", None)
    assert store.get("key") is None


def test_what_nobody_knows_is_not_taken_for_anothers(monkeypatch):
    """The head was set, and neither the answer came nor could anybody ask."""
    store = Lossy([])
    journal = store.journal()
    first = journal.commit(Draft(changes={"a": b"1"}, time=1.0), branch="main", expect=None)
    store.lost = ["answer"]
    get = store.get
    monkeypatch.setattr(store, "get", lambda key: get(key) if store.lost else gone())

    def gone():
        raise StateError("gone")

    draft = Draft(parents=(first,), changes={"a": b"2"}, time=2.0)
    with pytest.raises(StateError, match="not known"):
        journal.commit(draft, branch="main", expect=first)
    monkeypatch.undo()
    unpromised = journal.branches()["main"]
    assert unpromised != first
    other = store.journal()
    with pytest.raises(HeadMoved):
        other.commit(draft, branch="main", expect=first)
    draft = Draft(parents=(first,), changes={"b": b"3"}, time=3.0)
    second = journal.commit(draft, branch="main", expect=first)
    assert journal.branches() == {"main": second}
    assert journal.read_all(second) == {"a": b"1", "b": b"3"}
    with pytest.raises(HeadMoved):
        journal.commit(Draft(parents=(first,), changes={}, time=4.0), branch="main", expect=first)
