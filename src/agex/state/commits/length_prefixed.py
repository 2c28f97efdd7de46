"""Bytes in bytes: fields one behind the other, each with its length before it.

There is one encoding of a list of fields, so a digest of it is a digest of the fields.
"""

from __future__ import annotations

from agex.errors import StateCorrupt

__all__ = ["are_numbers", "pack", "unpack"]


def pack(*fields: bytes) -> bytes:
    """Return the fields in one piece. A length is a LEB128 number, as in Protocol Buffers."""
    parts = []
    for field in fields:
        length = len(field)
        if length < 128:
            parts.append(_BYTES[length])
        else:
            parts.append(_long(length))
        parts.append(field)
    return b"".join(parts)


def _long(length: int) -> bytes:
    coded = bytearray()
    while length > 127:
        coded.append(length & 127 | 128)
        length >>= 7
    coded.append(length)
    return bytes(coded)


def unpack(packed: bytes) -> list[bytes]:
    """Return the fields.

    Raises:
        StateCorrupt: this is not a piece that `pack` made.
    """
    fields = []
    at, end = 0, len(packed)
    while at < end:
        length = shift = 0
        while True:
            if at >= end or shift > 56:
                raise StateCorrupt("A record of the store is cut short.")
            byte = packed[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if at + length > end:
            raise StateCorrupt("A record of the store is cut short.")
        fields.append(packed[at : at + length])
        at += length
    return fields


def are_numbers(*values: object) -> bool:
    """Return whether all are whole numbers: a column of SQLite holds values of any kind."""
    return all(type(value) is int for value in values)


_BYTES = [bytes((value,)) for value in range(256)]
