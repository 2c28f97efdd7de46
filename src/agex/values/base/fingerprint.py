"""Fingerprints of live objects: digests of their encoding, a block at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from agex.values.base.group import BLOCK, Group

__all__ = ["Fingerprint", "digest", "fingerprint", "part_of"]


@dataclass(frozen=True)
class Fingerprint:
    """Digests of a group's parts. Equal ones of one process mean: nothing changed.

    They are comparable only between encodings of live objects in one process: a set that was loaded
    anew may iterate, and so encode, in another order. Take the first one after a load from the loaded
    objects, not from what was stored.
    """

    names: tuple[str, ...]
    parts: tuple[tuple[int, tuple[bytes, ...]], ...]
    """For the stream, then for each buffer: its length, and the digest of each block."""


def fingerprint(group: Group) -> Fingerprint:
    """Take the fingerprint of an encoded group; costs a reading of its memory."""
    return Fingerprint(
        group.names, tuple(part_of(part) for part in (memoryview(group.stream), *group.buffers))
    )


def part_of(data: memoryview) -> tuple[int, tuple[bytes, ...]]:
    """Return the length of a part, and the digest of each of its blocks."""
    size = data.nbytes
    if size <= BLOCK:
        return size, (digest(data),)
    return size, tuple([digest(data[start : start + BLOCK]) for start in range(0, size, BLOCK)])


def _blake2(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _best() -> Callable[[bytes | memoryview], bytes]:
    try:
        import xxhash
    except ImportError:
        return _blake2
    return xxhash.xxh3_128_digest


digest = _best()
"""A digest of 16 bytes that shows whether memory of this process changed, by xxh3 or else by BLAKE2. Not
collision-resistant: never an address."""
