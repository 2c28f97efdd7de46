"""Every store that there is, as fixtures: each empty, the servers real and started once.

Directories do not wait for the disk here; that they do is for the tests of crashes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import servers

from agex.state.commits.journal import Journal
from agex.state.disk.disk import Disk
from agex.state.kv.cache import Cache
from agex.state.kv.kv_journal import KVJournal
from agex.state.kv.memory import Memory
from agex.state.kv.store import KVStore

STORES = ["memory", "disk", "cache-disk", "cache-memory", "redis", "postgres"]
JOURNALS = ["memory", "disk", "redis", "postgres", "kv-on-disk"]

_numbers = itertools.count()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with servers.redis_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    with servers.postgres_server() as dsn:
        yield dsn


@pytest.fixture
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], KVStore]]:
    """Open stores by their kind; all of one test are the same store, so opening again is another client."""
    opened: list[KVStore] = []
    memory = Memory()
    number = next(_numbers)

    def open_store(kind: str) -> KVStore:
        store: KVStore
        match kind:
            case "memory":
                store = memory
            case "disk" | "kv-on-disk":
                store = Disk(tmp_path / "store", durable=False)
            case "cache-disk":
                store = Cache(Disk(tmp_path / "store", durable=False))
            case "cache-memory":
                store = Cache(memory)
            case "redis":
                from agex.state.redis import RedisStore

                store = RedisStore(request.getfixturevalue("redis_url"), prefix=f"test{number}:")
            case "postgres":
                from agex.state.postgres import PostgresStore

                store = PostgresStore(request.getfixturevalue("postgres_dsn"), table=f"test{number}")
        opened.append(store)
        return store

    yield open_store
    for store in opened:
        store.close()


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, opening: Callable[[str], KVStore]) -> KVStore:
    return opening(request.param)


@pytest.fixture(params=JOURNALS)
def journals(request: pytest.FixtureRequest, opening: Callable[[str], KVStore]) -> Callable[[], Journal]:
    """Open a journal of one store, as each process that uses it does."""

    def open_journal() -> Journal:
        store = opening(request.param)
        return KVJournal(store) if request.param == "kv-on-disk" else store.journal()

    return open_journal


@pytest.fixture
def journal(journals: Callable[[], Journal]) -> Journal:
    return journals()
