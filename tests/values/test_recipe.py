"""Groups are cut into chunks and put together again; what is damaged is not."""

from __future__ import annotations

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agex.errors import StateCorrupt
from agex.values import BLOCK, Allow, Group, cut, encode, fingerprint, from_recipe, read_recipe


def address(data: memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()


def group_of(*sizes: int) -> Group:
    stream, *buffers = (bytes(i % 251 for i in range(size)) for size in sizes)
    return Group(names=("a", "ü"), stream=stream, buffers=tuple(memoryview(b) for b in buffers))


def read_from(chunks: dict[bytes, memoryview]):
    return lambda key: bytes(chunks[key])


SIZES = [
    (0,),
    (1,),
    (4096,),
    (4097,),
    (BLOCK,),
    (BLOCK + 1,),
    (10, 0, 4096, 4097, 2 * BLOCK, 3 * BLOCK + 5),
    (9, *[5000] * 200),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_what_is_cut_is_put_together(sizes: tuple[int, ...]) -> None:
    group = group_of(*sizes)
    made = cut(group, address)
    got = from_recipe(made.payload, read_from(made.chunks))
    assert (got.names, got.stream, [bytes(b) for b in got.buffers]) == (
        group.names,
        group.stream,
        [bytes(b) for b in group.buffers],
    )
    assert all(b.nbytes <= 4096 or not b.readonly for b in got.buffers)
    assert read_recipe(made.payload).addresses == set(made.chunks)
    assert all(address(data) == key for key, data in made.chunks.items())


def test_a_small_variable_takes_few_bytes() -> None:
    (group,) = encode({"note": "x" * 56}, allow=Allow())
    made = cut(group, address)
    assert made.chunks == {}
    assert len(made.payload) <= 56 + 40


def test_what_did_not_change_is_not_addressed_again() -> None:
    data = bytearray(5 * BLOCK)
    group = Group(names=("a",), stream=b"s" * 10_000, buffers=(memoryview(data),))
    before, first = fingerprint(group), cut(group, address)
    data[2 * BLOCK] = 1
    again = cut(group, address, now=fingerprint(group), before=(before, first.recipe))
    assert list(again.chunks.values()) == [memoryview(data)[2 * BLOCK : 3 * BLOCK]]
    assert again.payload == cut(group, address).payload


def test_a_part_of_another_length_is_addressed_anew() -> None:
    data = bytearray(5 * BLOCK)
    group = Group(names=("a",), stream=b"s", buffers=(memoryview(data),))
    before, first = fingerprint(group), cut(group, address)
    longer = Group(names=("a",), stream=b"s", buffers=(memoryview(bytes(data) + b"1"),))
    again = cut(longer, address, now=fingerprint(longer), before=(before, first.recipe))
    assert again.payload == cut(longer, address).payload
    assert set(again.chunks) == set(cut(longer, address).chunks)


def test_the_first_of_many_bytes_that_differ_is_noticed_in_each_part() -> None:
    made = cut(group_of(10, 5000, 3 * BLOCK), address)
    for at in range(len(made.payload)):
        for flip in (1, 0x80):
            damaged = bytearray(made.payload)
            damaged[at] ^= flip
            try:
                from_recipe(bytes(damaged), read_from(made.chunks))
            except (StateCorrupt, KeyError):
                continue


@pytest.mark.parametrize("size", [100, 3 * BLOCK])
def test_a_payload_that_is_cut_short_is_corrupt(size: int) -> None:
    made = cut(group_of(size, size), address)
    for length in range(len(made.payload)):
        with pytest.raises(StateCorrupt):
            from_recipe(made.payload[:length], read_from(made.chunks))
    with pytest.raises(StateCorrupt):
        from_recipe(made.payload + b"\x00", read_from(made.chunks))


@given(st.binary(max_size=60))
def test_any_bytes_are_corrupt_or_a_recipe(payload: bytes) -> None:
    with contextlib.suppress(StateCorrupt):
        from_recipe(payload, lambda key: b"")


def test_a_chunk_of_another_length_is_corrupt() -> None:
    made = cut(group_of(10, 3 * BLOCK), address)
    with pytest.raises(StateCorrupt, match="length"):
        from_recipe(made.payload, lambda key: b"short")


def test_a_length_that_no_payload_could_name_is_corrupt() -> None:
    huge = b"\x01\x01\x01a\x20\x01" + b"\xff" * 8 + b"\x7f"
    with pytest.raises(StateCorrupt):
        from_recipe(huge, lambda key: b"")
