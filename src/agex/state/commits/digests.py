"""The digests that a store's content is checked with: BLAKE3 where its wheel is, else BLAKE2b.

A store records which one it was written with and is never read with the other.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import Protocol

from agex.errors import StateError

__all__ = ["Digest", "addresses_in", "new_digest", "open_digest"]

# The addresses in a payload are found without knowing its format: they begin with a mark and end with a sum.
_MARK = b"\xe7agx"
_ADDRESS = re.compile(rb"(?=(\xe7agx[\x00-\xff]{28}))")


class _Hash(Protocol):
    def digest(self) -> bytes: ...


class _Hashing(Protocol):
    def __call__(self, content: bytes | memoryview, /) -> _Hash: ...


class Digest:
    """A digest function of 32 bytes, by its name.

    Attributes:
        name: ``"blake3"`` or ``"blake2b"``.
    """

    def __init__(self, name: str, hashing: _Hashing) -> None:
        self.name = name
        self._hashing = hashing

    def __call__(self, content: bytes | memoryview) -> bytes:
        """Return the digest of the content."""
        return self._hashing(content).digest()

    def address(self, content: bytes | memoryview) -> bytes:
        """Return the address of a chunk: a mark of 4 bytes, 24 of its digest, and their CRC-32."""
        digest = self(content)[:24]
        return _MARK + digest + zlib.crc32(digest).to_bytes(4, "big")

    def check(self, *parts: bytes | int | None) -> bytes:
        """Return 8 bytes that tell whether a row is as it was written.

        They are for accidents; against intent there is the chain of commit hashes.
        """
        # The literals tell types apart: a damaged row may hold any.
        return self(repr(parts).encode())[:8]


def new_digest() -> Digest:
    """Return the digest that a new store is written with here."""
    try:
        return open_digest("blake3")
    except StateError:
        return open_digest("blake2b")


def open_digest(name: str) -> Digest:
    """Return the digest that a store was written with.

    Raises:
        StateError: it is not to be had here.
    """
    if name == "blake2b":
        return Digest(name, _blake2b)
    if name != "blake3":
        raise StateError(f"This store is written with the digest {name!r}, which this version does not know.")
    try:
        from blake3 import blake3
    except ImportError as error:
        raise StateError(
            "This store is written with the digest BLAKE3: run `pip install blake3` to read it."
        ) from error
    return Digest(name, blake3)


def addresses_in(payload: bytes) -> set[bytes]:
    """Return the addresses of chunks that a payload holds."""
    if _MARK not in payload:
        return set()
    found: set[bytes] = set(_ADDRESS.findall(payload))
    return {address for address in found if zlib.crc32(address[4:28]).to_bytes(4, "big") == address[28:]}


def _blake2b(content: bytes | memoryview, /) -> _Hash:
    return hashlib.blake2b(content, digest_size=32)
