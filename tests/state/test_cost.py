"""Operations that a state takes, counted: they follow what is asked for, not all that there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from agex.state import Disk, Memory, Versioned


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
