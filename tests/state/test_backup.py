"""A backup of a store that is in use: it opens, it is whole, and it is of one moment."""

from __future__ import annotations

import hashlib
import multiprocessing
import os

import pytest

from agex.errors import StateCorrupt, StateError
from agex.state import Cache, Disk, Memory, Versioned
from agex.state.commits.length_prefixed import pack
from agex.state.disk.disk import Disk as Store

LARGE = 60_000  # bytes: goes to the pack


def step(state, number):
    """Commit what belongs together."""
    content = os.urandom(LARGE)
    state["number"], state["content"], state["digest"] = number, content, hashlib.sha256(content).hexdigest()
    state.files["digest.txt"] = state["digest"].encode()
    return state.commit(f"number {number}")


def assert_whole(path, at_least=0):
    state = Versioned(Disk(path))
    assert state.fsck() == []
    assert state["number"] >= at_least
    for commit in state.history()[:20]:
        then = state.checkout(commit)
        assert hashlib.sha256(then["content"]).hexdigest() == then["digest"]
        assert then.files["digest.txt"] == then["digest"].encode()
        assert commit.message == f"number {then['number']}"
    state.close()
    return state


@pytest.fixture
def state(tmp_path):
    state = Versioned(Disk(tmp_path / "store", durable=False))
    for number in range(3):
        step(state, number)
    yield state
    state.close()


def test_a_backup_is_the_store_with_all_that_it_has(state, tmp_path):
    state.tag("good", state.history()[-1])
    other = state.fork("other")
    other["mine"] = 1
    other.commit()
    state.store.set("key", b"value")
    state["number"] = "not committed"
    state.backup(tmp_path / "deep" / "copy")
    copy = Versioned(Disk(tmp_path / "deep" / "copy"))
    assert (copy.branches(), copy.tags()) == (state.branches(), state.tags())
    assert [commit.hash for commit in copy.history()] == [commit.hash for commit in state.history()]
    assert copy["number"] == 2
    assert copy.store.get("key") == b"value"
    copy.close()
    assert sorted(os.listdir(tmp_path / "deep")) == ["copy"]  # noqa: PTH208 - names are wanted
    assert {entry.name for entry in (tmp_path / "deep" / "copy").iterdir()} <= {"state.db", "pack", "last"}
    assert_whole(tmp_path / "deep" / "copy", 2)


def test_a_backup_goes_on_alone(state, tmp_path):
    state.backup(tmp_path / "copy")
    copy = Versioned(Disk(tmp_path / "copy"))
    step(copy, 10)
    step(state, 20)
    copy.gc()
    copy.close()
    assert assert_whole(tmp_path / "copy", 10) is not None
    assert Versioned(state.store)["number"] == 20
    assert state.fsck() == []


def test_a_backup_of_an_empty_store_is_one(tmp_path):
    empty = Versioned(Disk(tmp_path / "store"))
    empty.backup(str(tmp_path / "copy"))
    empty.close()
    copy = Versioned(Disk(tmp_path / "copy"))
    assert (dict(copy), copy.branches()) == ({}, {})
    step(copy, 1)
    copy.close()
    assert_whole(tmp_path / "copy")


def test_a_store_behind_a_cache_is_backed_up(state, tmp_path):
    Versioned(Cache(state.store)).backup(tmp_path / "copy")
    assert_whole(tmp_path / "copy", 2)


def test_a_store_without_files_says_what_to_do():
    with pytest.raises(StateError, match="pg_dump"):
        Versioned(Memory()).backup("copy")


def write(path, stop, began):
    """Commit, collect and go back, as fast as can be, in a process of its own."""
    state = Versioned(Disk(path, durable=False))
    number = 100
    while not stop.is_set():
        step(state, number)
        number += 1
        if number % 7 == 0:
            state.reset(state.history()[3])
            state.gc()
        began.set()
    state.close()


def test_a_backup_while_another_process_commits_and_collects_is_whole(state, tmp_path):
    context = multiprocessing.get_context("spawn")
    stop, began = context.Event(), context.Event()
    writer = context.Process(target=write, args=(tmp_path / "store", stop, began))
    writer.start()
    try:
        assert began.wait(60)
        numbers = []
        for turn in range(12):
            state.backup(tmp_path / f"copy{turn}")
            opened = Versioned(Disk(tmp_path / f"copy{turn}"))
            numbers.append(opened["number"])
            opened.close()
            assert_whole(tmp_path / f"copy{turn}")
        assert len(set(numbers)) > 1, "it went on meanwhile"
    finally:
        stop.set()
        writer.join()
    assert writer.exitcode == 0
    assert state.fsck() == []


def test_a_pack_that_is_collected_while_it_is_copied_is_copied_all_the_same(state, tmp_path, monkeypatch):
    """Between the moment of the database and the copy of its pack, the pack is written anew and deleted."""
    from agex.state.disk import backup

    copied = backup._copy_rows

    def collected(own, to):
        needed = copied(own, to)
        for name in range(3):
            step(state, name)
        state.reset(state.history()[-1])
        state.gc()
        return needed

    monkeypatch.setattr(backup, "_copy_rows", collected)
    state.backup(tmp_path / "copy")
    assert not (tmp_path / "store" / "pack").exists(), "it is gone"
    assert_whole(tmp_path / "copy")


def test_a_pack_that_is_begun_just_before_the_moment_is_looked_for_again(state, tmp_path, monkeypatch):
    from agex.state.disk import backup

    copied = backup._copy_rows
    calls = []

    def collected(own, to):
        if not calls:
            state.reset(state.history()[-1])
            state.gc()
        calls.append(to)
        return copied(own, to)

    monkeypatch.setattr(backup, "_copy_rows", collected)
    state.backup(tmp_path / "copy")
    assert len(calls) == 2
    assert_whole(tmp_path / "copy")


TAKEN = {
    "a directory of things": lambda path: (path.mkdir(), (path / "thesis.txt").write_text("mine")),
    "a file": lambda path: path.write_text("mine"),
    "a link": lambda path: path.symlink_to(path.parent),
    "a link to nothing": lambda path: path.symlink_to(path.parent / "nothing"),
    "another backup": lambda path: Versioned(Disk(path)).close(),
}


@pytest.mark.parametrize("make", TAKEN.values(), ids=TAKEN)
def test_a_place_where_something_is_is_left_alone(state, tmp_path, make):
    make(tmp_path / "copy")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(StateError, match="There is something at"):
        state.backup(tmp_path / "copy")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["", "copy", "copy/deep"])
def test_a_place_in_the_store_itself_is_refused(state, tmp_path, name):
    with pytest.raises(StateError, match="in the store itself"):
        state.backup(tmp_path / "store" / name)


def test_an_empty_directory_will_do(state, tmp_path):
    (tmp_path / "copy").mkdir()
    state.backup(tmp_path / "copy")
    assert_whole(tmp_path / "copy", 2)


def test_a_place_that_cannot_be_written_is_said(state, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StateError, match="cannot be written"):
        state.backup(tmp_path / "file" / "copy")


DAMAGE = {
    "a byte of the pack": lambda path: flip(path / "pack", LARGE // 2),
    "an end of the pack": lambda path: (path / "pack").write_bytes((path / "pack").read_bytes()[:-1]),
    "the pack": lambda path: (path / "pack").unlink(),
}


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_store_is_not_copied(tmp_path, damage):
    state = Versioned(Disk(tmp_path / "store"))  # waits for the disk: what is missing is damage
    step(state, 0)
    state.close()
    damage(tmp_path / "store")
    with pytest.raises(StateCorrupt, match="not copied"):
        state.backup(tmp_path / "copy")
    state.close()
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_the_number_of_the_last_change_goes_on_in_a_copy(state, tmp_path):
    state.backup(tmp_path / "copy")
    copy = Store(tmp_path / "copy")
    copy.set("key", b"value")
    copy.close()
    last = (tmp_path / "copy" / "last").read_bytes()
    assert pack(last)  # it is written by the first change
    assert Store(tmp_path / "copy").get("key") == b"value"
