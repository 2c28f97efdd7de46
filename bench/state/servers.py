"""A commit of one changed variable over a server, beside one bare write of as many bytes to it, in turn.

    python -m bench.state.servers --dsn "host=127.0.0.1 user=... dbname=..." --redis redis://127.0.0.1:6379/0

The bare write is one upsert with the driver that the store uses, through a connection of its own. Both are on
disk when they return, as far as the server is set up for that.
"""

from __future__ import annotations

import argparse
import statistics
import time
import uuid
from collections.abc import Callable

from agex.state import Versioned
from agex.state.kv.store import KVStore

__all__ = ["main", "measure"]

_BYTES = 1000


def main() -> None:
    """Measure the servers that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dsn", help="of a PostgreSQL database")
    parser.add_argument("--redis", help="url of a Redis server")
    parser.add_argument("--pairs", type=int, default=301)
    options = parser.parse_args()
    print(f"{'server':<14}{'a write, ms':>14}{'a commit, ms':>14}{'ratio':>8}")
    for name, where, prepare in (("PostgreSQL", options.dsn, _postgres), ("Redis", options.redis, _redis)):
        if where:
            store, write = prepare(where)
            least, commit = measure(store, write, options.pairs)
            print(f"{name:<14}{least:>14.3f}{commit:>14.3f}{commit / least:>8.2f}")


def measure(store: KVStore, write: Callable[[bytes], object], pairs: int) -> tuple[float, float]:
    """Return the medians of a bare write and of a commit, in ms."""
    state = Versioned(store)
    for number in range(50):
        state[f"v{number}"] = {"a": number}
    state.commit()
    times: list[tuple[float, float]] = []
    for number in range(pairs):
        begin = time.perf_counter()
        write(b"%d" % number + bytes(_BYTES))
        middle = time.perf_counter()
        state["v7"]["a"] = number
        state.commit("turn")
        times.append((middle - begin, time.perf_counter() - middle))
    least, commit = (statistics.median(each) * 1e3 for each in zip(*times, strict=True))
    return least, commit


def _postgres(dsn: str) -> tuple[KVStore, Callable[[bytes], object]]:
    import psycopg
    from psycopg.sql import SQL, Identifier

    from agex.state.postgres import PostgresStore

    name = f"bench_{uuid.uuid4().hex[:8]}"
    store = PostgresStore(dsn, table=name)
    connection = psycopg.connect(dsn, autocommit=True)
    upsert = SQL(
        "INSERT INTO {} VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    ).format(Identifier(name))
    return store, lambda value: connection.execute(upsert, (b"floor", value))


def _redis(url: str) -> tuple[KVStore, Callable[[bytes], object]]:
    import redis

    from agex.state.redis import RedisStore

    client = redis.Redis.from_url(url)
    prefix = f"bench-{uuid.uuid4().hex[:8]}:"
    return RedisStore(url, prefix=prefix), lambda value: client.set(f"{prefix}floor", value)


if __name__ == "__main__":
    main()
