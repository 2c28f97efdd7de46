"""Files are part of a commit: what was touched is written, what was not costs nothing."""

from __future__ import annotations

import random

import pytest

from agex.errors import StateConflict, StateCorrupt, StateError
from agex.state import Disk, Live, Memory, Versioned
from agex.state.working.tracked_files import FileSpace, content_of, entry_of, same_content


@pytest.fixture(params=["memory", "disk"])
def state(request, tmp_path):
    made = Versioned(Memory() if request.param == "memory" else Disk(tmp_path / "store", durable=False))
    yield made
    made.close()


def test_files_come_back_from_another_process(tmp_path):
    first = Versioned(Disk(tmp_path))
    first.files["a/b.txt"] = b"1"
    first.files["large.bin"] = large = random.Random(1).randbytes(1_000_000)
    first.commit()
    first.close()
    again = Versioned(Disk(tmp_path))
    assert dict(again.files) == {"a/b.txt": b"1", "large.bin": large}
    again.close()


def test_a_snapshot_has_the_files_as_they_were(state):
    state.files["a.txt"] = b"1"
    first = state.commit()
    state.files["a.txt"] = b"2"
    del_later = state.commit()
    del state.files["a.txt"]
    state.commit()
    assert dict(state.checkout(first).files) == {"a.txt": b"1"}
    assert dict(state.checkout(del_later).files) == {"a.txt": b"2"}
    assert dict(state.checkout("main").files) == {}


def test_a_path_of_a_snapshot_may_begin_with_a_slash(state):
    state.files["a/b.txt"] = b"1"
    files = state.checkout(state.commit()).files
    assert files["/a/b.txt"] == b"1"
    assert "/a/b.txt" in files
    assert list(files) == ["a/b.txt"]


def test_a_snapshots_files_cannot_be_written(state):
    state.files["a"] = b"1"
    files = state.checkout(state.commit()).files
    with pytest.raises(TypeError):
        files["a"] = b"2"


def test_a_file_that_was_not_touched_is_not_written_again(state):
    state.files["large.bin"] = bytes(1_000_000)
    state.commit()
    state.files["small.txt"] = b"1"
    change = state.files.change()
    assert list(change.payloads) == ["f/small.txt"]
    assert change.chunks == {}


def test_nothing_is_committed_where_nothing_changed(state):
    state.files["a"] = b"1"
    head = state.commit()
    assert state.commit() == head


def test_what_was_written_and_removed_between_two_commits_leaves_no_trace(state):
    state.files["kept"] = b""
    head = state.commit()
    state.files["passing"] = b"1"
    del state.files["passing"]
    assert state.commit() == head


def test_reset_goes_back_and_drops_what_was_not_committed(state):
    state.files["a"] = b"1"
    head = state.commit()
    state.files["a"] = b"2"
    state.files["b"] = b"2"
    state.reset(head)
    assert dict(state.files) == {"a": b"1"}


def test_a_fork_goes_its_own_way(state):
    state.files["a"] = b"1"
    state.commit()
    other = state.fork("other")
    other.files["a"] = b"2"
    other.commit()
    assert (state.files["a"], other.files["a"]) == (b"1", b"2")


def test_a_merge_takes_files_that_only_the_other_changed(state):
    state.files["same"] = b"0"
    state.files["removed"] = b"0"
    state.commit()
    other = state.fork("other")
    other.files["theirs"] = b"1"
    del other.files["removed"]
    other.commit()
    state.files["mine"] = b"2"
    state.commit()
    state.merge(other)
    assert dict(state.files) == {"same": b"0", "theirs": b"1", "mine": b"2"}
    assert dict(state.checkout("main").files) == dict(state.files)


def test_a_merge_of_one_file_changed_on_both_sides_is_refused(state):
    state.files["a"] = b"0"
    state.commit()
    other = state.fork("other")
    other.files["a"] = b"1"
    other.commit()
    state.files["a"] = b"2"
    state.commit()
    with pytest.raises(StateConflict, match="a; nothing was merged"):
        state.merge(other)
    assert dict(state.files) == {"a": b"2"}


def test_a_merge_of_one_file_changed_to_the_same_on_both_sides_takes_nothing(state):
    state.files["a"] = b"0"
    state.commit()
    other = state.fork("other")
    for side in (state, other):
        side.files["a"] = b"1"
        side.commit()
    state.merge(other)
    assert dict(state.files) == {"a": b"1"}


def test_a_difference_shows_text_line_by_line(state):
    state.files["a.py"] = b"one\ntwo\n"
    state.files["b.bin"] = b"\0"
    first = state.commit()
    state.files["a.py"] = b"one\n2\n"
    state.files["b.bin"] = b"\0\0"
    state.files["c"] = b"new"
    diff = state.diff(first)
    state.commit()
    assert not diff
    files = state.diff(first).files
    assert files.changed == {"a.py": "@@ -1,2 +1,2 @@\n one\n-two\n+2", "b.bin": ""}
    assert files.added == {"c": "@@ -0,0 +1 @@\n+new"}
    assert "~ a.py:" in str(state.diff(first))


def test_a_rewritten_file_of_the_same_bytes_is_no_difference(state):
    state.files["a"] = b"1"
    first = state.commit()
    state.files["a"] = b"1"
    state.commit()
    assert not state.diff(first)


def test_bytes_that_look_like_an_address_are_kept_and_harm_no_check(state):
    state.files["real"] = bytes(100_000)
    head = state.commit()
    chunk = next(iter(state.files.entries["real"].stored.split(b"\xe7agx")[1:]))
    state.files["forged"] = b"\xe7agx" + chunk[:28]
    state.files["wrong"] = b"\xe7agx" + bytes(24) + (0x6CAA_0000).to_bytes(4, "big")
    state.commit()
    state.reset(head)
    state.files["forged"] = b"\xe7agx" + chunk[:28]
    state.commit()
    state.gc()
    assert state.fsck() == []
    assert state.files["forged"] == b"\xe7agx" + chunk[:28]


def test_collecting_garbage_keeps_the_chunks_of_files(state):
    state.files["a"] = content = random.Random(2).randbytes(700_000)
    state.commit()
    state.gc()
    assert state.checkout("main").files["a"] == content


def test_a_file_of_a_damaged_length_is_never_answered():
    memory = Versioned(Memory())
    memory.files["a"] = b"12345"
    payload = memory.files.change().payloads["f/a"]
    with pytest.raises(StateCorrupt):
        content_of(None, "a", payload.replace(b"12345", b"1234").replace(b"\x051234", b"\x041234"))
    with pytest.raises(StateCorrupt):
        entry_of("a", payload[:-3])
    with pytest.raises(StateCorrupt):
        entry_of("a", b"\x01\x09" + payload[2:])


def test_the_time_of_a_write_is_no_part_of_its_content():
    space = Versioned(Memory()).files
    space.put("a", b"1", created=1.0, modified=1.0)
    first = space.change().payloads["f/a"]
    space.put("a", b"1", created=1.0, modified=2.0)
    second = space.change().payloads["f/a"]
    assert first != second
    assert same_content(first, second)


def test_live_keeps_files_in_memory():
    state = Live()
    state.files["a"] = b"1"
    assert dict(state.files) == {"a": b"1"}
    assert state.settle("turn") is None


def test_what_is_written_while_a_commit_is_made_goes_into_the_next():
    state = Versioned(Memory())
    state.files["a"] = b"1"
    change = state.files.change()
    state.files["a"] = b"2"
    state.files.committed("0" * 64, change)
    assert state.files["a"] == b"2"
    assert state.files.is_changed


def test_a_missing_file_is_a_key_error():
    with pytest.raises(KeyError):
        FileSpace()["missing"]
    with pytest.raises(KeyError):
        del FileSpace()["missing"]


def test_two_writers_of_one_branch_keep_both_files(state):
    state.files["a"] = b"1"
    state.commit()
    other = Versioned(state.store)
    other.files["theirs"] = b"1"
    other.commit()
    state.files["mine"] = b"2"
    with pytest.raises(StateConflict) as conflict:
        state.commit()
    side = next(name for name in state.branches() if name != "main")
    assert side in str(conflict.value)
    state.reset("main")
    state.merge(side)
    assert dict(state.files) == {"a": b"1", "theirs": b"1", "mine": b"2"}


def test_a_checkout_of_no_commit_is_refused(state):
    with pytest.raises(StateError):
        state.checkout("nothing")


def test_moving_a_file_does_not_read_or_write_its_bytes(state):
    state.files["old"] = content = bytes(1_000_000)
    state.commit()
    state.files.move("old", "new")
    change = state.files.change()
    assert (sorted(change.payloads), change.chunks) == (["f/new", "f/old"], {})
    state.commit()
    assert dict(state.checkout("main").files) == {"new": content}


def test_moving_what_was_just_written_keeps_it(state):
    state.files["old"] = b"1"
    state.files.move("old", "new")
    state.commit()
    assert dict(state.checkout("main").files) == {"new": b"1"}


def test_the_time_of_a_stored_file_can_be_set_without_its_bytes(state):
    state.files["a"] = bytes(1_000_000)
    state.commit()
    state.files.set_time("a", -1.5)
    assert state.files.change().chunks == {}
    assert state.checkout(state.commit()).files.entries["a"].modified == -1.5


@pytest.mark.parametrize("path", ["", "/", "a/", "a//b", "../a", "a/./b"])
def test_what_is_no_path_of_a_file_is_refused(path):
    with pytest.raises(StateError, match="is no path of a file"):
        FileSpace()[path] = b""


@pytest.mark.parametrize("asked", [1, 300], ids=["one by one", "all at once"])
def test_what_is_stored_of_files_is_read_when_it_is_asked_for(state, asked):
    written = {f"d/{number}": b"x" * number for number in range(300)}
    for path, content in written.items():
        state.files[path] = content
    state.commit()
    again = state.fork()
    try:
        assert list(again.files.entries) == sorted(written)
        again.files["d/7"] = b"new"
        del again.files["d/8"]
        expected = {**written, "d/7": b"new"}
        del expected["d/8"]
        assert [again.files.entries[path].size for path in list(expected)[:asked]] == [
            len(content) for content in list(expected.values())[:asked]
        ]
        again.commit()
        again.files.move("d/9", "e")
        again.commit()
        expected["e"] = expected.pop("d/9")
        assert {path: entry.size for path, entry in again.files.entries.items()} == {
            path: len(content) for path, content in expected.items()
        }
        assert dict(again.files) == expected
    finally:
        again.close()
    assert dict(state.files) == written
