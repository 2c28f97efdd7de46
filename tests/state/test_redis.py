from __future__ import annotations

import pytest

from agex.errors import StateError
from agex.state.commits.journal import Draft
from agex.state.disk.disk import Disk


@pytest.fixture
def redis(opening):
    return opening("redis")


def test_stores_with_other_prefixes_in_one_database_do_not_meet(redis, redis_url):
    from agex.state.redis import RedisStore

    other = RedisStore(redis_url, prefix="another*[x]:")
    redis.set("key", b"1")
    other.set("key", b"2")
    assert dict(redis.items()) == {"key": b"1"}
    assert dict(other.items()) == {"key": b"2"}
    other.remove("key")
    assert "key" in redis
    other.close()


def test_a_connection_that_the_server_dropped_is_made_anew(redis):
    redis.set("key", b"1")
    redis._client.client_kill_filter(_type="normal", skipme=False)
    assert redis.get("key") == b"1"


def test_a_connection_that_is_dropped_while_a_request_is_under_way_is_made_anew(redis):
    redis.set("key", b"1")
    pool = redis._client.connection_pool
    connection = pool.get_connection()
    pool.release(connection)
    connection.can_read = lambda timeout=0: False  # it is looked at before the server drops it
    redis._client.client_kill_filter(_type="normal", skipme=False)
    assert redis.get("key") == b"1"


def test_a_cas_whose_answer_was_lost_is_no_conflict(redis):
    journal = redis.journal()
    swap = redis.cas

    def lossy(key, value, expected):
        swap(key, value, expected)
        return swap(key, value, expected)  # as a client does that tries again

    redis.cas = lossy
    commit = journal.commit(Draft(changes={"a": b"1"}, time=1.0), branch="main", expect=None)
    assert journal.branches() == {"main": commit}


@pytest.mark.parametrize("url", ["", "http://127.0.0.1", "redis://127.0.0.1:1/0"])
def test_a_url_that_leads_nowhere_is_an_error_that_says_so(redis_url, url):
    from agex.state.redis import RedisStore

    with pytest.raises(StateError, match="Redis"):
        RedisStore(url)


@pytest.mark.parametrize(("library", "name"), [("redis", "RedisStore"), ("psycopg", "PostgresStore")])
def test_a_library_that_is_not_installed_is_named(monkeypatch, library, name):
    import importlib
    import sys

    module = importlib.import_module(f"agex.state.{'redis' if library == 'redis' else 'postgres'}")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(StateError, match=r"pip install .agex-py"):
        getattr(module, name)("nowhere")


def test_a_history_in_redis_is_what_it_is_on_disk(redis, tmp_path):
    """The same drafts, read back alike, whatever stands behind the journal."""
    disk = Disk(tmp_path / "store", durable=False)
    contents = []
    for store in (redis, disk):
        journal = store.journal()
        head = None
        for number in range(5):
            changes = {f"k{number % 3}": b"%d" % number, "k9": None}
            draft = Draft(parents=(head,) if head else (), changes=changes, time=float(number), events=[b"e"])
            head = journal.commit(draft, branch="main", expect=head)
        contents.append(
            [
                (journal.read_all(record.hash), journal.changes(record.hash), record.time, record.events)
                for record in journal.history(head)
            ]
        )
    assert contents[0] == contents[1]
    disk.close()
