"""Operations that a state takes, counted: they follow what is asked for, not all that there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from agex.state import Disk, Memory, Versioned
from agex.state.working.variables import Variables
from agex.values.base import trees


class Counting(Memory):
    """A memory that counts the keys that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def get(self, key: str) -> bytes | None:
        self.reads += 1
        return super().get(key)

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        keys = list(keys)
        self.reads += len(keys)
        return super().get_many(keys)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        found = list(super().items(prefix))
        self.reads += len(found)
        return iter(found)


@pytest.fixture(scope="module")
def many() -> tuple[Counting, str, str]:
    """A store of 3,000 variables, with its first and its third commit."""
    store = Counting()
    state = Versioned(store)
    state.update({f"v{number}": number for number in range(3_000)})
    first = state.commit()
    state["v7"] = "second"
    state.commit()
    state["v8"] = "third"
    return store, first, state.commit()


def reads_of(store: Counting, work) -> int:
    before = store.reads
    work()
    return store.reads - before


@pytest.mark.parametrize("name", ["v7", "no_such"])
def test_one_variable_of_an_old_commit_is_read_by_its_key(many, name):
    store, first, _ = many
    state = Versioned(store)
    assert reads_of(store, lambda: state.checkout(first).get(name)) < 20
    assert reads_of(store, lambda: name in state.checkout(first)) < 20


def test_the_first_variable_of_an_opened_state_is_read_by_its_key(many):
    store, _, _ = many
    assert reads_of(store, lambda: Versioned(store)["v7"]) < 20


def test_a_state_is_opened_without_a_look_at_the_other_branches():
    store = Counting()
    state = Versioned(store)
    state["n"] = 1
    state.commit()
    alone = reads_of(store, lambda: Versioned(store)["n"])
    for number in range(200):
        state.fork(f"b{number}")
    assert reads_of(store, lambda: Versioned(store, branch="b7")["n"]) == alone
    assert reads_of(store, lambda: state.fork("one more")) < 20


def test_a_commit_after_another_reads_the_branch_and_whether_its_parent_is_there(many):
    store, _, _ = many
    state = Versioned(store)
    state["v9"] = 0
    state.commit()
    state["v9"] = 1
    assert reads_of(store, state.commit) <= 3


def test_a_difference_reads_what_differs(many):
    store, first, last = many
    state = Versioned(store)
    assert list(state.diff(first, last)) == ["v7", "v8"]
    assert reads_of(store, lambda: state.diff(first, last)) < 60


def test_a_snapshot_knows_what_is_none_of_its_variables(many):
    store, first, _ = many
    there = Versioned(store).checkout(first)
    assert [name in there for name in ("v7", "cache", "import json", 7)] == [True, False, False, False]


@pytest.mark.parametrize("commits", [3, 40, 90])
def test_a_difference_on_disk_is_the_same_however_many_commits_are_between(tmp_path, commits):
    state = Versioned(Disk(tmp_path / "store", durable=False))
    state.update({f"v{number}": number for number in range(200)})
    first = state.commit()
    for number in range(commits):
        state[f"v{number % 3}"] = -number - 1
        state.commit()
    del state["v100"]
    state["new"] = 1
    state.commit()
    found = state.diff(first)
    assert (sorted(found.changed), [*found.added], [*found.removed]) == (
        ["v0", "v1", "v2"],
        ["new"],
        ["v100"],
    )
    state.close()


def looked_at(state: Versioned, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many variables the next commit looks at, one by one or encoded."""
    seen: set[str] = set()
    single, whole = trees.tree, Variables._encode

    def tree(variables, name):
        seen.add(name)
        return single(variables, name)

    def encode(self, objects, apart=frozenset()):
        seen.update(objects)
        return whole(self, objects, apart)

    with monkeypatch.context() as patch:
        patch.setattr(trees, "tree", tree)
        patch.setattr(Variables, "_encode", encode)
        state.commit()
    return len(seen)


def small_dicts(count: int) -> Versioned:
    state = Versioned()
    state.update({f"v{number}": {"n": number, "rows": [number, (1, 2)]} for number in range(count)})
    state.commit()
    return state


def test_a_commit_looks_at_what_was_given_out_since_the_last(monkeypatch):
    state = small_dicts(300)
    state["v7"]["n"] = -1
    state["v8"]
    assert looked_at(state, monkeypatch) == 2
    assert looked_at(state, monkeypatch) == 0
    assert Versioned(state.store)["v7"]["n"] == -1


def test_what_a_task_has_in_its_hands_is_looked_at_in_blocks(monkeypatch):
    state = small_dicts(300)
    names = state.snapshot()
    state.commit()
    state.commit()
    names["v7"]["n"] = -1
    assert looked_at(state, monkeypatch) <= 64
    assert Versioned(state.store)["v7"]["n"] == -1


def test_what_nobody_has_any_more_is_looked_at_once_more_and_then_left(monkeypatch):
    state = small_dicts(50)
    names = state.snapshot()
    state.commit()
    del names
    state.commit()
    assert looked_at(state, monkeypatch) == 0
