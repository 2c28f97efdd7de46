"""The conformance suite of stores: the behaviour that every `KVStore` must have."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from agex._interpreter.threads import CAN_START
from agex.state.kv.store import KVStore

__all__ = ["check_kvstore"]

_KEYS = [
    "plain",
    "with/slash",
    "with space",
    "ünïcödé/变量/🜁",
    "a" * 500,
    "*",
    "[x]",
    "?",
    "\\",
    "%_",
    "a\x00b",
]
_VALUES = [b"", b"\x00", b"\xff\xfe\x00\n", bytes(range(256)) * 64, b"x" * 1_500_000]
_THREADS = 8
_ROUNDS = 25


def check_kvstore(store: KVStore) -> None:
    """Prove that a store does what `KVStore` asks for. It should be empty, and is empty again afterwards.

    ::

        def test_my_store_is_a_store():
            check_kvstore(MyStore(...))

    Raises:
        AssertionError: with what the store does wrong.
    """
    assert not list(store.items()), "The store must be empty to be checked: `items()` yields something."
    for check in (_single, _many, _prefixes, _removal, _staged, _cas, _cas_races, _threads):
        try:
            check(store)
        finally:
            store.remove_many(list(store.keys()))
    assert not list(store.items()), "After all keys were removed, `items()` still yields something."


def _single(store: KVStore) -> None:
    for key in _KEYS:
        assert store.get(key) is None, f"`get` of a key that was never set must give None: {key[:20]!r}"
        assert key not in store, f"A key that was never set must not be `in` the store: {key[:20]!r}"
        for value in _VALUES:
            store.set(key, value)
            got = store.get(key)
            assert got == value, f"`get` must give what was set under {key[:20]!r}: {_short(value, got)}"
            assert type(got) is bytes, f"`get` must give bytes, not {type(got).__name__}"
        assert key in store, f"A key with a value must be `in` the store: {key[:20]!r}"
    store.set("empty", b"")
    assert "empty" in store, "A key with an empty value must be `in` the store."
    assert 5 not in store, "What is no text is never `in` the store, and no error."


def _many(store: KVStore) -> None:
    items = {f"many/{number}": b"%d" % number for number in range(2_500)}
    store.set_many(items)
    assert store.get_many(list(items)) == items, "`get_many` must give all that `set_many` was given."
    assert dict(store.items("many/")) == items, "`items` must yield all that `set_many` was given."
    found = store.get_many(["many/1", "absent", "many/2", "many/1"])
    assert found == {"many/1": b"1", "many/2": b"2"}, (
        f"`get_many` must leave out absent keys; it gives {found}"
    )
    assert store.get_many([]) == {}, "`get_many` of no keys must give an empty dict."
    store.set_many({})
    store.set_many({"many/1": b"new"})
    assert store.get("many/1") == b"new", "`set_many` must replace a value."


def _prefixes(store: KVStore) -> None:
    items = {key: key.encode() for key in (*_KEYS, "p", "p/", "p/1", "p/2", "p0", "P/1", "q/p/1")}
    store.set_many(items)
    for prefix in ("", "p", "p/", "p/1", "ünïcödé/变", "*", "[", "?", "\\", "%", "nothing"):
        wanted = {key: value for key, value in items.items() if key.startswith(prefix)}
        found = list(store.items(prefix))
        assert len(found) == len(dict(found)), f"`items({prefix!r})` yields a key twice."
        assert dict(found) == wanted, (
            f"`items({prefix!r})` must yield {sorted(wanted)}, not {sorted(dict(found))}"
        )
        assert sorted(store.keys(prefix)) == sorted(wanted), f"`keys({prefix!r})` must yield {sorted(wanted)}"


def _removal(store: KVStore) -> None:
    store.set_many({"a": b"1", "b": b"2", "c": b"3"})
    store.remove("a")
    store.remove("a")  # no error
    assert store.get("a") is None, "`get` of a removed key must give None."
    assert "a" not in store, "A removed key must not be `in` the store."
    store.remove_many(["b", "absent"])
    store.remove_many([])
    assert dict(store.items()) == {"c": b"3"}, "`remove_many` must remove these keys and no others."


def _staged(store: KVStore) -> None:
    for count in (1, 2_500):
        before = {f"before/{number}": b"%d" % number for number in range(count)}
        after = {f"after/{number}": b"%d" % number for number in range(count)}
        found = store.stage(before, look=["before/0", "after/0", "absent"], then=after)
        assert found == {"before/0": b"0"}, (
            f"`stage` must read *look* behind *items* and before *then*; it gives {sorted(found)}"
        )
        assert store.get_many([*before, *after]) == before | after, "`stage` must set all that it was given."
        store.remove_many([*before, *after])
    assert store.stage({}, look=["absent"]) == {}, "`stage` of nothing must read alone."
    store.stage({"pin": b"1"})
    assert store.get("pin") == b"1", "`stage` must set without *look* and *then*, too."
    store.unstage("pin")
    assert "pin" not in store, "A key must not be `in` the store when it was unstaged."
    store.unstage("pin")


def _cas(store: KVStore) -> None:
    assert store.cas("head", b"x", b"") is False, (
        "`cas` on an absent key that expects a value must give False."
    )
    assert "head" not in store, "A `cas` that gave False must change nothing."
    assert store.cas("head", b"1", None) is True, "`cas` on an absent key that expects none must give True."
    assert store.cas("head", b"2", None) is False, (
        "`cas` that expects no value, where there is one, must give False."
    )
    assert store.cas("head", b"2", b"other") is False, "`cas` that expects another value must give False."
    assert store.get("head") == b"1", "A `cas` that gave False must change nothing."
    assert store.cas("head", b"", b"1") is True, "`cas` that expects the value must give True."
    assert store.get("head") == b"", "`cas` must set the value."
    assert store.cas("head", b"\x00\xff", None) is False, (
        "An empty value is a value: `cas` that expects none gives False."
    )
    assert store.cas("head", b"\x00\xff", b"") is True, (
        "`cas` must compare empty and binary values as they are."
    )


def _cas_races(store: KVStore) -> None:
    def create(number: int) -> bool:
        return store.cas("new", b"%d" % number, None)

    won = _at_once(create)
    assert sum(won) == 1, f"{sum(won)} threads created the same key with `cas(key, value, None)`; one must."
    store.set("count", b"0")

    def count(_: int) -> bool:
        for _ in range(_ROUNDS):
            while True:
                held = store.get("count") or b""
                if store.cas("count", b"%d" % (int(held) + 1), held):
                    break
        return True

    _at_once(count)
    total = int(store.get("count") or b"0")
    assert total == _THREADS * _ROUNDS, (
        f"{_THREADS * _ROUNDS} increments by `cas` give {total}: some were lost."
    )


def _threads(store: KVStore) -> None:
    def use(number: int) -> bool:
        for turn in range(_ROUNDS):
            store.set(f"thread/{number}/{turn}", b"%d" % turn)
            assert store.get(f"thread/{number}/{turn}") == b"%d" % turn, "A thread must read what it wrote."
        return True

    _at_once(use)
    found = len(dict(store.items("thread/")))
    assert found == _THREADS * _ROUNDS, f"Threads wrote {_THREADS * _ROUNDS} keys, {found} are there."


def _at_once(work: Callable[[int], bool]) -> list[bool]:
    """Run work in threads that begin together; one after the other, where there are none."""
    if not CAN_START:
        return list(map(work, range(_THREADS)))
    gate = threading.Barrier(_THREADS)

    def begin(number: int) -> bool:
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(begin, range(_THREADS)))


def _short(value: bytes, got: bytes | None) -> str:
    return f"{len(value)} bytes {value[:10]!r}..., not {None if got is None else got[:10]!r}"
