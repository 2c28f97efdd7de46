from __future__ import annotations

import pytest

from agex.errors import StateCorrupt, StateError, StateFull
from agex.state.commits.journal import Draft
from agex.state.disk.disk import Disk
from agex.state.kv import pins
from agex.state.kv.cache import Cache
from agex.state.kv.memory import Memory
from agex.state.kv.store import KVStore
from agex.testing.kvstore import check_kvstore


def test_every_store_of_ours_is_a_store(store):
    check_kvstore(store)


def test_what_one_client_wrote_another_reads(opening):
    for kind in ("disk", "redis", "postgres"):
        opening(kind).set("key", b"value")
        assert opening(kind).get("key") == b"value"


class Forgetful(Memory):
    """Each method of it is wrong in one way, if it is chosen."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def get(self, key):
        value = super().get(key)
        return None if self.fault == "empty is none" and value == b"" else value

    def __contains__(self, key):
        return bool(self.get(key)) if self.fault == "contains by truth" else super().__contains__(key)

    def items(self, prefix=""):
        items = super().items("" if self.fault == "no prefix" else prefix)
        return iter([*items] * 2) if self.fault == "twice" else items

    def remove(self, key):
        if self.fault == "absent is an error" and key not in self._values:
            raise KeyError(key)
        super().remove(key)

    def stage(self, items, *, look=(), then=None):
        if self.fault == "staged at once":
            items, then = items | (then or {}), None
        if self.fault == "looks first":
            found = self.get_many(look)
            super().stage(items, then=then)
            return found
        return super().stage(items, look=look, then=None if self.fault == "nothing then" else then)

    def unstage(self, key):
        if self.fault != "stays staged":
            super().unstage(key)

    def cas(self, key, value, expected):
        if self.fault == "cas sets anyway":
            self.set(key, value)
            return True
        if self.fault == "cas in two steps":
            if self.get(key) != expected:
                return False
            for _ in range(1000):
                pass
            self.set(key, value)
            return True
        return super().cas(key, value, expected)


@pytest.mark.parametrize(
    "fault",
    [
        "empty is none",
        "contains by truth",
        "no prefix",
        "twice",
        "absent is an error",
        "cas sets anyway",
        "staged at once",
        "looks first",
        "nothing then",
        "stays staged",
    ],
)
def test_the_suite_finds_a_store_that_is_wrong(fault):
    with pytest.raises((AssertionError, KeyError)):
        check_kvstore(Forgetful(fault))


def test_the_suite_asks_for_an_empty_store():
    store = Memory()
    store.set("mine", b"1")
    with pytest.raises(AssertionError, match="must be empty"):
        check_kvstore(store)
    assert store.get("mine") == b"1"


def test_a_store_is_abstract_until_it_has_every_method():
    with pytest.raises(TypeError, match="cas"):
        KVStore()


def test_a_journal_over_a_cache_reads_content_from_memory_and_heads_from_the_store():
    reads: list[str] = []

    class Counting(Memory):
        def get(self, key):
            reads.append(key)
            return super().get(key)

    store = Counting()
    journal = Cache(store).journal()
    content = b"c" * 10
    address = journal.address(content)
    draft = Draft(changes={"x": b"payload" + address}, chunks={address: content}, time=1.0)
    commit = journal.commit(draft, branch="main", expect=None)
    journal.chunk(address)
    journal.read(commit, "x")
    reads.clear()
    assert journal.chunk(address) == content
    assert journal.read(commit, "x") == b"payload" + address
    assert [key for key in reads if "/o/c/" not in key] == []
    other = store.journal().commit(Draft(parents=(commit,), time=2.0), branch="main", expect=commit)
    assert journal.branches() == {"main": other}


def test_content_that_a_collector_dropped_while_it_was_written_is_written_again():
    class Collected(Memory):
        """A collector had said that it drops the content, and does so behind the first step of the writer."""

        def stage(self, items, *, look=(), then=None):
            found = super().stage(items, look=look, then=then)
            if "agex/doomed" in found:
                self.remove_many(["content", "agex/doomed"])
            return found

    store = Collected()
    doomed = bytes(16) + pins._short("content")
    store.set("agex/doomed", doomed)
    with pins.Pins(store).hold(["content"], look=["branch"], write={"content": b"c"}) as found:
        assert found == {}
        assert store.get("content") == b"c"
    assert list(store.keys()) == ["content"]


def test_a_store_that_is_full_keeps_no_pin():
    class Full(Memory):
        def stage(self, items, *, look=(), then=None):
            super().stage(items)
            raise StateFull("no room")

    store = Full()
    with pytest.raises(StateFull), pins.Pins(store).hold(["content"], look=[], write={"content": b"c"}):
        pass
    assert list(store.keys()) == []


def test_a_cache_of_no_size_is_no_cache_and_one_before_a_directory_holds_its_chunks(tmp_path):
    content = b"c" * 50_000
    with_room, without = (Cache(Disk(tmp_path / "store", durable=False), size) for size in (10**6, 0))
    journal = with_room.journal()
    address = journal.address(content)
    draft = Draft(changes={"x": b"=" + address}, chunks={address: content}, time=1.0)
    commit = journal.commit(draft, branch="main", expect=None)
    assert journal.chunk(address) == without.journal().chunk(address) == content
    (tmp_path / "store" / "pack").write_bytes(b"damaged")
    assert journal.chunk(address) == content
    with pytest.raises(StateCorrupt):
        without.journal().chunk(address)
    assert journal.read(commit, "x") == b"=" + address
    assert without.journal().fsck() != []
    with_room.close()
    without.close()


def test_a_server_that_is_not_there_is_a_state_error():
    pytest.importorskip("redis")
    pytest.importorskip("psycopg")
    from agex.state.postgres import PostgresStore
    from agex.state.redis import RedisStore

    with pytest.raises(StateError, match="cannot be reached"):
        RedisStore("redis://127.0.0.1:1/0")
    with pytest.raises(StateError, match="cannot be reached"):
        PostgresStore("host=127.0.0.1 port=1 user=agex connect_timeout=2")
