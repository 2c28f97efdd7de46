"""What every journal does, whatever stands behind it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agex.errors import StateConflict, StateCorrupt, StateError
from agex.state.commits.journal import Collected, CommitInfo, Draft, HeadMoved

LARGE = bytes(range(256)) * 400  # goes to the pack of a directory
SMALL = b"small chunk"


def draft(*parents, time=1.0, **changes):
    payloads = {key: value.encode() if isinstance(value, str) else value for key, value in changes.items()}
    return Draft(parents=parents, changes=payloads, time=time)


def commit(journal, *parents, branch="main", time=1.0, **changes):
    """Commit on top of where the branch is."""
    head = journal.branches().get(branch)
    base = parents or (() if head is None else (head,))
    return journal.commit(draft(*base, time=time, **changes), branch=branch, expect=head)


def with_chunks(journal, *parents, name="x", chunks=(SMALL,), time=1.0):
    held = {journal.address(chunk): chunk for chunk in chunks}
    payload = b"recipe:" + b"|".join(held)
    return Draft(parents=parents, changes={name: payload}, chunks=held, time=time)


# --- commits --------------------------------------------------------------------------------------


def test_a_new_store_holds_nothing(journal):
    assert journal.branches() == {}
    assert journal.tags() == {}
    assert journal.fsck() == []
    assert journal.gc() == Collected(commits=0, chunks=0, bytes=0)


def test_a_commit_is_read_as_it_was_written(journal):
    events = [b"first", b"", b"\x00\xff" * 500]
    hash_ = journal.commit(
        Draft(
            changes={"a": b"1", "b/1": b"", "ünï": b"\x00"},
            events=events,
            time=12.5,
            message="wörds\nand more",
        ),
        branch="main",
        expect=None,
    )
    assert journal.branches() == {"main": hash_}
    assert journal.read_all(hash_) == {"a": b"1", "b/1": b"", "ünï": b"\x00"}
    assert journal.keys(hash_) == ["a", "b/1", "ünï"]
    assert [journal.read(hash_, key) for key in ("a", "b/1", "ünï", "b", "")] == [
        b"1",
        b"",
        b"\x00",
        None,
        None,
    ]
    assert journal.events(hash_) == events
    assert journal.record(hash_) == CommitInfo(
        hash=hash_, parents=(), time=12.5, message="wörds\nand more", events=3
    )
    assert journal.changes(hash_) == {"a": b"1", "b/1": b"", "ünï": b"\x00"}


def test_a_commit_holds_what_its_parent_held_and_its_changes(journal):
    first = commit(journal, a="1", b="2", c="3")
    second = commit(journal, a="new", b=None, d="4")
    assert journal.read_all(second) == {"a": b"new", "c": b"3", "d": b"4"}
    assert journal.read_all(first) == {"a": b"1", "b": b"2", "c": b"3"}
    assert journal.read(second, "b") is None
    assert journal.read(first, "d") is None
    assert journal.changes(second) == {"a": b"new", "b": None, "d": b"4"}


def test_what_is_set_to_what_it_was_is_no_change(journal):
    commit(journal, a="1", b="2")
    second = commit(journal, a="1", b="3", never=None)
    assert journal.changes(second) == {"b": b"3"}
    assert journal.keys(second) == ["a", "b"]


def test_a_commit_may_change_nothing(journal):
    first = commit(journal, a="1")
    second = commit(journal, time=2.0)
    assert second != first
    assert journal.read_all(second) == {"a": b"1"}
    assert journal.changes(second) == {}
    assert journal.events(second) == []


def test_a_key_can_come_back(journal):
    commit(journal, a="1")
    gone = commit(journal, a=None)
    back = commit(journal, a="2")
    assert journal.read_all(gone) == {}
    assert journal.read_all(back) == {"a": b"2"}


def test_keys_have_a_prefix_by_characters(journal):
    hash_ = commit(journal, **{"v/a": "1", "v/b": "2", "v": "3", "w": "4", "v0": "5", "ÿ/x": "6", "V/a": "7"})
    assert journal.keys(hash_, "v/") == ["v/a", "v/b"]
    assert journal.read_all(hash_, "v/") == {"v/a": b"1", "v/b": b"2"}
    assert journal.keys(hash_, "ÿ") == ["ÿ/x"]
    assert journal.keys(hash_, "nothing") == []


def test_hundreds_of_keys_are_kept_apart(journal):
    first = commit(journal, **{f"key{n}": str(n) for n in range(600)})
    second = commit(journal, **{f"key{n}": None if n % 3 else f"new{n}" for n in range(590)})
    wanted = {f"key{n}": f"new{n}".encode() for n in range(0, 590, 3)}
    wanted |= {f"key{n}": str(n).encode() for n in range(590, 600)}
    assert journal.read_all(second) == wanted
    assert journal.keys(second) == sorted(wanted)
    assert len(journal.keys(first)) == 600
    assert len(journal.diff(first, second)) == 590
    assert journal.fsck() == []


def test_the_hash_is_over_parents_changes_events_time_and_message(journal):
    def written(number, **settings):
        settings = {"changes": {"a": b"1"}, "time": 1.0} | settings
        return journal.commit(Draft(**settings), branch=f"b{number}", expect=None)

    base = written(0)
    others = [
        written(1, changes={"a": b"2"}),
        written(2, changes={"b": b"1"}),
        written(3, time=2.0),
        written(4, message="m"),
        written(5, events=[b"e"]),
        written(6, events=[b"e", b""]),
        written(7, parents=(base,)),
    ]
    assert len({base, *others}) == 8
    assert written(8) == base
    assert journal.fsck() == []


def test_two_branches_may_make_the_same_commit(journal):
    first = commit(journal, a="1")
    one = commit(journal, a="2", time=5.0)
    other = commit(journal, first, branch="other", a="2", time=5.0)
    assert other == one
    assert journal.branches() == {"main": one, "other": one}
    third = commit(journal, branch="other", b="3")
    assert journal.read_all(third) == {"a": b"2", "b": b"3"}


# --- branches and history -------------------------------------------------------------------------


def test_branches_hold_what_was_committed_on_them(journal):
    first = commit(journal, a="1", b="1")
    second = commit(journal, a="2", c="2")
    side = commit(journal, first, branch="side", a="3", b=None)
    third = commit(journal, b="4")
    assert journal.branches() == {"main": third, "side": side}
    assert journal.read_all(side) == {"a": b"3"}
    assert journal.read_all(second) == {"a": b"2", "b": b"1", "c": b"2"}
    assert journal.read_all(third) == {"a": b"2", "b": b"4", "c": b"2"}


@pytest.mark.parametrize("depth", [5, 40])
def test_forks_upon_forks_hold_what_they_should(journal, depth):
    head = commit(journal, **{f"k{n}": "start" for n in range(5)}, gone="soon")
    contents = [(head, journal.read_all(head))]
    for level in range(depth):
        expected = dict(contents[-1][1]) | {f"k{level % 5}": b"%d" % level}
        change: dict[str, str | None] = {f"k{level % 5}": str(level)}
        if level == 3:
            change["gone"] = None
            del expected["gone"]
        head = commit(journal, head, branch=f"level{level}", time=float(level), **change)
        commit(journal, branch=f"level{level}", other="later")  # so that the next one forks
        contents.append((head, expected))
    for head, expected in contents:
        assert journal.read_all(head) == expected
        assert journal.keys(head) == sorted(expected)
        assert journal.read(head, "gone") == expected.get("gone")
    assert len(list(journal.history(head))) == depth + 1
    assert journal.fsck() == []


def test_history_goes_back_by_first_parents(journal):
    first = commit(journal, a="1", time=1.0)
    second = commit(journal, a="2", time=2.0)
    side = commit(journal, first, branch="side", b="1", time=3.0)
    merge = commit(journal, second, side, b="1", time=4.0)
    assert [record.hash for record in journal.history(merge)] == [merge, second, first]
    assert journal.record(merge).parents == (second, side)
    assert [record.hash for record in journal.history(side)] == [side, first]


def test_a_long_history_is_listed_whole(journal):
    hashes = [commit(journal, n=str(number), time=float(number)) for number in range(260)]
    assert [record.hash for record in journal.history(hashes[-1])] == hashes[::-1]


def test_a_diff_has_both_payloads_of_what_differs(journal):
    first = commit(journal, same="1", changed="2", removed="3")
    second = commit(journal, changed="4", removed=None, added="5")
    side = commit(journal, first, branch="side", changed="6")
    assert journal.diff(first, second) == {
        "added": (None, b"5"), "changed": (b"2", b"4"), "removed": (b"3", None)
    }  # fmt: skip
    assert journal.diff(second, first) == {
        "added": (b"5", None), "changed": (b"4", b"2"), "removed": (None, b"3")
    }  # fmt: skip
    assert journal.diff(second, side) == {
        "added": (b"5", None), "changed": (b"4", b"6"), "removed": (None, b"3")
    }  # fmt: skip
    assert journal.diff(None, side) == {
        "changed": (None, b"6"), "removed": (None, b"3"), "same": (None, b"1")
    }  # fmt: skip
    assert journal.diff(side, side) == {}


def test_a_diff_over_many_commits_leaves_out_what_came_back(journal):
    first = commit(journal, a="0", b="0")
    for number in range(1, 100):
        last = commit(journal, a=str(number % 99), b=str(number))
    assert journal.diff(first, last) == {"b": (b"0", b"99")}


def test_a_commit_on_a_branch_that_moved_is_refused_and_changes_nothing(journal):
    first = commit(journal, a="1")
    second = commit(journal, a="2")
    with pytest.raises(HeadMoved) as moved:
        journal.commit(draft(first, a="3"), branch="main", expect=first)
    assert (moved.value.branch, moved.value.head) == ("main", second)
    with pytest.raises(HeadMoved) as there:
        journal.commit(draft(a="3"), branch="main", expect=None)
    assert there.value.head == second
    with pytest.raises(HeadMoved) as absent:
        journal.commit(draft(first, a="3"), branch="none", expect=first)
    assert absent.value.head is None
    assert journal.branches() == {"main": second}
    assert journal.read_all(second) == {"a": b"2"}


def test_a_branch_is_moved_and_deleted(journal):
    first = commit(journal, a="1")
    second = commit(journal, a="2")
    journal.move("main", first, expect=second)
    assert journal.branches() == {"main": first}
    journal.move("other", second, expect=None)
    assert journal.branches() == {"main": first, "other": second}
    with pytest.raises(HeadMoved):
        journal.move("main", second, expect=second)
    with pytest.raises(HeadMoved):
        journal.move("main", None, expect=second)
    journal.move("main", None, expect=first)
    assert journal.branches() == {"other": second}
    journal.move("main", None, expect=None)
    again = commit(journal, first, a="3")
    assert journal.read_all(again) == {"a": b"3"}
    assert journal.branches() == {"main": again, "other": second}


def test_a_branch_has_any_name(journal):
    names = ["a/b c", "ünïcödé", "x" * 200, "*", "a"]
    hashes = {name: commit(journal, branch=name, name=name) for name in names}
    assert journal.branches() == hashes
    assert all(journal.resolve(name) == hash_ for name, hash_ in hashes.items())


def test_a_tag_names_a_commit_for_good(journal):
    first = commit(journal, a="1")
    second = commit(journal, a="2")
    journal.tag("v1", first)
    journal.tag("v1", first)
    with pytest.raises(StateError, match="v1"):
        journal.tag("v1", second)
    assert journal.tags() == {"v1": first}
    assert journal.resolve("v1") == first


def test_a_text_stands_for_a_branch_a_tag_or_a_hash(journal):
    first = commit(journal, a="1")
    second = commit(journal, a="2")
    journal.tag("first", first)
    for text, hash_ in (("main", second), ("first", first), (first, first), (second[:6], second)):
        assert journal.resolve(text) == hash_
    assert journal.resolve(second[:9].upper()) == second
    for text in ("", "nothing", first[:5], "0" * 64, first + "0", first[:10] + "x"):
        with pytest.raises(StateError):
            journal.resolve(text)


def test_a_text_that_stands_for_two_commits_is_refused(journal, monkeypatch):

    from agex.state.commits import draft_checks

    monkeypatch.setattr(draft_checks, "_SHORTEST", 1)
    hashes = [commit(journal, n=str(number)) for number in range(20)]
    shared = next(hash_[0] for hash_ in hashes if sum(other[0] == hash_[0] for other in hashes) > 1)
    with pytest.raises(StateError, match="commits begin with"):
        journal.resolve(shared)


def test_a_commit_that_is_not_there_is_an_error_everywhere(journal):
    known = commit(journal, a="1")
    for unknown in ("ab" * 32, "", "not a hash", "ab" * 31):
        for call in with_unknown(journal, known, unknown):
            with pytest.raises(StateError):
                call()
    assert journal.branches() == {"main": known}
    assert journal.tags() == {}


def with_unknown(journal, known, unknown):
    return [
        lambda: journal.read(unknown, "a"),
        lambda: journal.read_all(unknown),
        lambda: journal.keys(unknown),
        lambda: journal.record(unknown),
        lambda: list(journal.history(unknown)),
        lambda: journal.changes(unknown),
        lambda: journal.diff(known, unknown),
        lambda: journal.diff(unknown, known),
        lambda: journal.events(unknown),
        lambda: journal.move("other", unknown, expect=None),
        lambda: journal.tag("other", unknown),
        lambda: journal.commit(draft(unknown, a="2"), branch="other", expect=None),
        lambda: journal.commit(draft(known, unknown, a="2"), branch="other", expect=None),
    ]


# --- chunks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", SMALL, LARGE, LARGE * 5], ids=["empty", "small", "large", "larger"])
def test_a_chunk_is_read_by_its_address(journal, content):
    address = journal.address(content)
    assert address == journal.address(memoryview(content))
    assert journal.missing([address]) == {address}
    with pytest.raises(StateCorrupt):
        journal.chunk(address)
    written = with_chunks(journal, chunks=[memoryview(bytearray(content))])
    journal.commit(written, branch="main", expect=None)
    assert journal.missing([address, address]) == set()
    assert journal.chunk(address) == content


def test_a_chunk_is_stored_once(journal):
    first = journal.commit(with_chunks(journal, chunks=[LARGE, SMALL]), branch="main", expect=None)
    again = with_chunks(journal, first, name="y", chunks=[SMALL, LARGE])
    second = journal.commit(again, branch="main", expect=first)
    known = Draft(parents=(second,), changes={"z": b"recipe:" + journal.address(LARGE)}, time=1.0)
    journal.commit(known, branch="main", expect=second)
    assert journal.chunk(journal.address(LARGE)) == LARGE
    assert journal.fsck() == []


def test_a_chunk_that_no_payload_names_is_refused(journal):
    stray = Draft(changes={"x": b"1"}, chunks={journal.address(SMALL): SMALL}, time=1.0)
    with pytest.raises(StateError, match="named by none"):
        journal.commit(stray, branch="main", expect=None)
    assert journal.branches() == {}


def test_bytes_that_look_like_an_address_are_bytes(journal):
    strange = journal.address(b"of nothing stored")
    hash_ = commit(journal, x=strange + b"\xe7agx", y=strange[:20])
    assert journal.read(hash_, "x") == strange + b"\xe7agx"
    journal.gc()
    assert journal.read(hash_, "x") == strange + b"\xe7agx"


# --- several clients ------------------------------------------------------------------------------


def test_what_one_client_commits_the_next_sees(journals):
    one, other = journals(), journals()
    first = commit(one, a="1")
    assert other.branches() == {"main": first}
    second = commit(other, a="2")
    assert one.read_all(second) == {"a": b"2"}
    with pytest.raises(HeadMoved):
        one.commit(draft(first, a="3"), branch="main", expect=first)


def test_of_writers_that_race_each_loser_is_told_and_no_update_is_lost(journals):
    clients, turns = 4, 8
    commit(journals(), count="0")
    gate = threading.Barrier(clients)

    def count(number):
        journal = journals()
        gate.wait()
        conflicts = 0
        for _ in range(turns):
            while True:
                head = journal.branches()["main"]
                value = int(journal.read(head, "count")) + 1
                try:
                    following = draft(head, time=float(number), count=str(value))
                    journal.commit(following, branch="main", expect=head)
                    break
                except HeadMoved:
                    conflicts += 1
        return conflicts

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(count, range(clients)))
    journal = journals()
    head = journal.branches()["main"]
    assert journal.read(head, "count") == b"%d" % (clients * turns)
    assert len(list(journal.history(head))) == clients * turns + 1
    assert journal.fsck() == []


def test_threads_share_one_journal(journal):
    def write(number):
        head = None
        for turn in range(6):
            base = () if head is None else (head,)
            head = journal.commit(draft(*base, n=f"{number}.{turn}"), branch=f"b{number}", expect=head)
            assert journal.read(head, "n") == f"{number}.{turn}".encode()
        return head

    with ThreadPoolExecutor(6) as pool:
        heads = list(pool.map(write, range(6)))
    assert journal.branches() == {f"b{number}": head for number, head in enumerate(heads)}
    assert journal.fsck() == []


def test_closing_twice_is_fine(journals):
    journal = journals()
    commit(journal, a="1")
    journal.close()
    journal.close()


# --- garbage --------------------------------------------------------------------------------------


def test_collecting_drops_what_nothing_reaches_and_nothing_else(journal):
    first = commit(journal, a="1")
    kept = journal.commit(with_chunks(journal, first, chunks=[SMALL, LARGE]), branch="main", expect=first)
    other = LARGE[::-1]
    lost = journal.commit(with_chunks(journal, first, chunks=[SMALL, other]), branch="lost", expect=None)
    more = commit(journal, branch="lost", b="2")
    assert journal.gc() == Collected(commits=0, chunks=0, bytes=0)
    journal.move("lost", None, expect=more)
    collected = journal.gc()
    assert (collected.commits, collected.chunks) == (2, 1)
    assert collected.bytes > len(other)
    for hash_ in (lost, more):
        with pytest.raises(StateError):
            journal.read(hash_, "a")
    assert journal.missing([journal.address(other)]) == {journal.address(other)}
    assert journal.chunk(journal.address(SMALL)) == SMALL
    assert journal.chunk(journal.address(LARGE)) == LARGE
    assert [record.hash for record in journal.history(kept)] == [kept, first]
    assert journal.fsck() == []
    assert journal.gc() == Collected(commits=0, chunks=0, bytes=0)


def test_collecting_keeps_what_tags_merges_and_forks_need(journal):
    first = commit(journal, a="1")
    tagged = commit(journal, a="2")
    journal.tag("keep", tagged)
    merged = commit(journal, first, branch="merged", b="1")
    base = commit(journal, first, branch="base", c="1")
    fork = commit(journal, base, branch="fork", c="2")
    later = commit(journal, branch="base", c="3")
    head = commit(journal, tagged, merged, b="1")
    for branch, at in (("merged", merged), ("base", later)):
        journal.move(branch, None, expect=at)
    assert journal.gc().commits == 1
    for hash_ in (first, tagged, merged, base, fork, head):
        assert journal.record(hash_).hash == hash_
    assert journal.read_all(fork) == {"a": b"1", "c": b"2"}
    journal.move("main", None, expect=head)
    assert journal.gc().commits == 2
    assert journal.read_all(tagged) == {"a": b"2"}
    assert journal.fsck() == []


def test_after_a_reset_and_a_collection_the_branch_goes_on(journal):
    first = commit(journal, a="1", b="1")
    second = commit(journal, a="2")
    journal.move("main", first, expect=second)
    assert journal.gc().commits == 1
    third = commit(journal, a="3")
    assert journal.read_all(third) == {"a": b"3", "b": b"1"}
    assert journal.changes(third) == {"a": b"3"}
    assert journal.fsck() == []


def test_deep_forks_are_collected(journal):
    head = commit(journal, a="0")
    for level in range(40):
        head = commit(journal, head, branch=f"level{level}", a=str(level), time=float(level))
        commit(journal, branch=f"level{level}", a="later")
    for branch, at in journal.branches().items():
        if branch not in {"main", "level20"}:
            journal.move(branch, None, expect=at)
    assert journal.gc().commits == 19 * 2 + 20
    assert journal.read(journal.branches()["level20"], "a") == b"later"
    assert len(list(journal.history("level20" and journal.branches()["level20"]))) == 23
    assert journal.fsck() == []


def test_a_chunk_that_was_promised_and_then_collected_is_a_conflict(journals):
    writer, collector = journals(), journals()
    first = commit(writer, a="1")
    lost = writer.commit(with_chunks(writer, first, chunks=[LARGE]), branch="lost", expect=None)
    address = writer.address(LARGE)
    assert writer.missing([address]) == set()
    collector.move("lost", None, expect=lost)
    assert collector.gc().chunks == 1
    again = Draft(parents=(first,), changes={"x": b"recipe:" + address}, time=2.0)
    with pytest.raises(StateConflict, match="Commit again"):
        writer.commit(again, branch="main", expect=first)
    assert writer.branches() == {"main": first}
    assert writer.missing([address]) == {address}
    written = with_chunks(writer, first, chunks=[LARGE], time=2.0)
    writer.commit(written, branch="main", expect=first)
    assert writer.chunk(address) == LARGE


def test_collecting_beside_writers_loses_nothing(journals):
    commit(journals(), a="start")
    done = threading.Event()

    def write(number):
        journal = journals()
        held = {}
        for turn in range(12):
            name = f"w{number}t{turn}"
            chunk = name.encode() * 9000
            base = journal.branches()["main"]
            head = journal.commit(with_chunks(journal, base, chunks=[chunk]), branch=name, expect=None)
            if turn % 2:
                journal.move(name, None, expect=head)
            else:
                held[name] = (head, chunk)
        return held

    def collect():
        journal = journals()
        while not done.is_set():
            journal.gc()

    with ThreadPoolExecutor(3) as pool:
        collecting = pool.submit(collect)
        try:
            kept = [pool.submit(write, number) for number in range(2)]
            found = [future.result() for future in kept]
        finally:
            done.set()
        collecting.result()
    journal = journals()
    journal.gc()
    assert journal.fsck() == []
    for held in found:
        for head, chunk in held.values():
            assert journal.chunk(journal.address(chunk)) == chunk
            assert journal.read(head, "a") == b"start"
