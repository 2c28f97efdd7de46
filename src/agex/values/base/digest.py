"""The digest of fingerprints: xxh3 where its wheel is installed, BLAKE2 where it is not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

__all__ = ["digest"]


def _blake2(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _best() -> Callable[[bytes | memoryview], bytes]:
    try:
        import xxhash
    except ImportError:
        return _blake2
    return xxhash.xxh3_128_digest


digest = _best()
"""16 bytes that tell whether the process's own memory changed. Not collision-resistant: never an address."""
