"""A store in a Redis server, for processes on many machines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from agex.errors import StateError
from agex.state.kv.store import KVStore

__all__ = ["RedisStore"]

_BATCH = 500  # keys of one request
_TOGETHER = 8 * 1024 * 1024  # bytes that are sent with other steps in one request
_CAS = """
local held = redis.call('GET', KEYS[1])
if (ARGV[1] == '0' and held) or (ARGV[1] == '1' and held ~= ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[3])
return 1
"""


class RedisStore(KVStore):
    """Keep everything in a Redis server.

    It lasts as the server is set up to make it last: with ``appendonly yes`` and
    ``appendfsync always`` a commit is on disk when it returns, with Redis' own defaults the
    last minutes may be lost with the power. The server must not evict keys
    (``maxmemory-policy noeviction``, its default).

    Args:
        url: ``redis://[user:password@]host[:port][/database]``, ``rediss://`` or ``unix://``.
        prefix: what all keys begin with, so that others can use the same database.

    Raises:
        StateError: the server cannot be reached.
    """

    def __init__(self, url: str, *, prefix: str = "agex:") -> None:
        try:
            import redis
            from redis.backoff import ExponentialBackoff, NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise StateError(
                'A store in Redis needs a package that is not installed: run `pip install "agex-py[redis]"`.'
            ) from error
        self._arguments = {"url": url, "prefix": prefix}
        self._prefix = prefix.encode()
        self._errors = (redis.RedisError, ValueError)  # the latter of a url that is none
        # A dropped connection is mostly noticed before it is used again, but may be dropped just then.
        retry = Retry(ExponentialBackoff(cap=0.5, base=0.05), retries=3)
        with self._translated():
            self._client: Any = redis.Redis.from_url(url, decode_responses=False, retry=retry)
            self._client.ping()
            # Not tried again: the first try may have come through, and nobody would know.
            self._swapping: Any = redis.Redis.from_url(
                url, decode_responses=False, retry=Retry(NoBackoff(), 0)
            )
            self._cas = self._swapping.register_script(_CAS)

    def _opened_with(self) -> dict[str, Any]:
        return self._arguments

    def get(self, key: str) -> bytes | None:
        with self._translated():
            value: bytes | None = self._client.get(self._key(key))
            return value

    def set(self, key: str, value: bytes) -> None:
        with self._translated():
            self._client.set(self._key(key), value)

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for batch in _batches(keys):
            with self._translated():
                values = self._client.mget([self._key(key) for key in batch])
            found |= {key: value for key, value in zip(batch, values, strict=True) if value is not None}
        return found

    def set_many(self, items: Mapping[str, bytes]) -> None:
        for batch in _batches(items):
            with self._translated():
                self._client.mset({self._key(key): items[key] for key in batch})

    def stage(
        self,
        items: Mapping[str, bytes],
        *,
        look: Collection[str] = (),
        then: Mapping[str, bytes] | None = None,
    ) -> dict[str, bytes]:
        then = then or {}
        if len(items) + len(look) + len(then) > _BATCH or sum(map(len, then.values())) > _TOGETHER:
            return super().stage(items, look=look, then=then)
        with self._translated():
            # One request: the server carries out each when it has carried out the one before.
            steps = self._client.pipeline(transaction=False)
            if items:
                steps.mset({self._key(key): value for key, value in items.items()})
            if look:
                steps.mget([self._key(key) for key in look])
            if then:
                steps.mset({self._key(key): value for key, value in then.items()})
            answers = steps.execute()
        values = answers[bool(items)] if look else ()
        return {key: value for key, value in zip(look, values, strict=True) if value is not None}

    def remove(self, key: str) -> None:
        self.remove_many([key])

    def remove_many(self, keys: Iterable[str]) -> None:
        for batch in _batches(keys):
            with self._translated():
                self._client.delete(*map(self._key, batch))

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        keys = self.keys(prefix)
        while batch := list(islice(keys, _BATCH)):
            yield from self.get_many(batch).items()

    def keys(self, prefix: str = "") -> Iterator[str]:
        pattern = _literal(self._key(prefix)) + b"*"
        with self._translated():
            # SCAN may name a key twice.
            found = set(self._client.scan_iter(match=pattern, count=_BATCH))
        for key in found:
            yield key.removeprefix(self._prefix).decode()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        with self._translated():
            return bool(self._client.exists(self._key(key)))

    def cas(self, key: str, value: bytes, expected: bytes | None) -> bool:
        with self._translated():
            arguments = (b"0", b"", value) if expected is None else (b"1", expected, value)
            return bool(self._cas(keys=[self._key(key)], args=arguments))

    def close(self) -> None:
        self._client.close()
        self._swapping.close()

    def _key(self, key: str) -> bytes:
        return self._prefix + key.encode()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise StateError(f"The Redis server refuses or cannot be reached: {error}") from error


def _literal(text: bytes) -> bytes:
    """Return a pattern of SCAN that matches a text itself."""
    return b"".join(b"\\" + bytes((byte,)) if byte in b"*?[]^\\" else bytes((byte,)) for byte in text)


def _batches(keys: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(keys)
    while batch := list(islice(rest, _BATCH)):
        yield batch
