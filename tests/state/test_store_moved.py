"""A store that is moved, deleted or replaced under an open state: what is acknowledged is on disk."""

from __future__ import annotations

import os
import shutil

import pytest

from agex.errors import StateError
from agex.state import Disk, Versioned
from agex.state.disk.disk import Disk as Store

LARGE = 100_000  # bytes: goes to the pack


def begun(path):
    state = Versioned(Disk(path, durable=False))
    state["n"], state["large"] = 0, os.urandom(LARGE)
    state.commit()
    return state


def another(path):
    state = begun(path)
    state.close()
    return path


def replace_by_another_store(path):
    other = another(path.parent / "other")
    shutil.rmtree(path)
    other.rename(path)


def replace(path, name):
    other = another(path.parent / "other")
    os.replace(other / name, path / name)  # noqa: PTH105 - its name says it


def copy_back(path, name):
    """As somebody does who restores one file."""
    content = (path / name).read_bytes()
    (path / name).unlink()
    (path / name).write_bytes(content)


def cut(path, name, size):
    with (path / name).open("r+b") as file:
        file.truncate(size)


HARM = {
    "the directory is removed": shutil.rmtree,
    "the directory is moved": lambda path: path.rename(path.parent / "elsewhere"),
    "the directory is removed and made again": lambda path: (shutil.rmtree(path), path.mkdir()),
    "another store is put in its place": replace_by_another_store,
    "a link is put in its place": lambda path: (
        path.rename(path.parent / "elsewhere"),
        path.symlink_to(another(path.parent / "other")),
    ),
    "the database is removed": lambda path: (path / "state.db").unlink(),
    "the database is moved": lambda path: (path / "state.db").rename(path / "old.db"),
    "the database is replaced": lambda path: replace(path, "state.db"),
    "the database is emptied": lambda path: cut(path, "state.db", 0),
    "the log is removed": lambda path: (path / "state.db-wal").unlink(),
    "the log is emptied": lambda path: cut(path, "state.db-wal", 0),
    "the log is cut": lambda path: cut(path, "state.db-wal", 4096),
    "the log is copied back": lambda path: copy_back(path, "state.db-wal"),
    "the pack is removed": lambda path: (path / "pack").unlink(),
    "the pack is moved": lambda path: (path / "pack").rename(path / "old"),
    "the pack is replaced": lambda path: replace(path, "pack"),
    "the pack is emptied": lambda path: cut(path, "pack", 0),
    "the pack is cut": lambda path: cut(path, "pack", LARGE // 2),
    "the pack is copied back": lambda path: copy_back(path, "pack"),
}
CHANGES = {
    "a small commit": lambda state: state.update(n=1),
    "a large commit": lambda state: state.update(large=os.urandom(LARGE)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_a_commit_to_a_store_that_is_gone_is_an_error_each_time(tmp_path, harm, change):
    state = begun(tmp_path / "store")
    head = state.head
    harm(tmp_path / "store")
    for _ in range(3):
        change(state)
        with pytest.raises(StateError, match=r"moved, deleted|has [\d,]+ bytes"):
            state.commit()
    assert state.head == head
    state.close()


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_nothing_else_is_acknowledged_by_a_store_that_is_gone(tmp_path, harm):
    state = begun(tmp_path / "store")
    harm(tmp_path / "store")
    for change in (
        lambda: state.tag("good"),
        lambda: state.fork("other"),
        lambda: state.store.set("key", b"value"),
        lambda: state.store.cas("key", b"value", None),
    ):
        with pytest.raises(StateError):
            change()
    state.close()


def test_a_store_that_goes_in_the_middle_of_a_commit_is_an_error(tmp_path):
    path = tmp_path / "store"
    state = begun(path)
    state["n"] = 1
    with pytest.raises(StateError, match="moved, deleted"), state.store._directory.changing():
        shutil.rmtree(path)
    state.close()


def test_a_store_that_goes_in_the_middle_of_a_commit_and_comes_back_is_no_conflict(tmp_path, monkeypatch):
    path = tmp_path / "store"
    state = begun(path)
    rows = type(state._journal)._add_rows

    def gone(*args):
        path.rename(tmp_path / "elsewhere")
        return rows(*args)

    state["n"], state["large"] = 1, os.urandom(LARGE)
    monkeypatch.setattr(type(state._journal), "_add_rows", gone)
    with pytest.raises(StateError, match="moved, deleted"):
        state.commit()
    monkeypatch.undo()
    (tmp_path / "elsewhere").rename(path)
    state["n"] = 2
    state.commit()
    assert list(state.branches()) == ["main"]
    assert Versioned(state.store)["n"] == 2
    assert state.fsck() == []
    state.close()


def test_a_store_that_was_put_back_goes_on(tmp_path):
    path = tmp_path / "store"
    state = begun(path)
    path.rename(tmp_path / "elsewhere")
    state["n"] = 1
    with pytest.raises(StateError):
        state.commit()
    (tmp_path / "elsewhere").rename(path)
    state.commit()
    state.close()
    assert Versioned(Disk(path))["n"] == 1


def test_a_store_that_was_restored_goes_on_when_it_is_opened_anew(tmp_path):
    path = tmp_path / "store"
    state = begun(path)
    replace_by_another_store(path)
    state["n"] = 1
    with pytest.raises(StateError):
        state.commit()
    state.close()
    opened = Versioned(Disk(path))
    opened["n"] = 2
    opened.commit()
    assert Versioned(Disk(path))["n"] == 2
    opened.close()


def test_another_process_that_closes_and_collects_is_no_harm(tmp_path):
    path = tmp_path / "store"
    state = begun(path)
    other = Store(path, durable=False)
    for number in range(20):
        state["n"], state["large"] = number, os.urandom(LARGE)
        state.commit()
    state.reset(state.history()[-1])
    Versioned(other).gc()
    assert not (path / "pack").exists(), "it was written anew"
    other.close()
    state["n"] = 99
    state.commit()
    state.close()
    assert Versioned(Disk(path)).fsck() == []
