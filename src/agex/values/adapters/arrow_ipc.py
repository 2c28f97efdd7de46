"""Check of an Arrow stream, message by message, before a library reads it.

A few bytes can say a lot of memory in two ways: buffers that are compressed, and buffers that several
columns share. The encoder writes neither, so both are refused, from the headers of the messages, before
anything is allocated. pyarrow's public functions show neither.

The form is that of https://arrow.apache.org/docs/format/Columnar.html (encapsulated messages, File
`Message.fbs`); the numbers of fields below are their places in the tables there.
"""

from __future__ import annotations

import struct
from typing import Any

__all__ = ["require_plain"]

_MARK = b"\xff\xff\xff\xff"  # the beginning of each message, since Arrow 0.15
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3  # kinds of messages
_HEADER_TYPE, _HEADER, _BODY_LENGTH, _CUSTOM = 1, 2, 3, 4  # fields of a message
_DATA = 1  # field of a batch of a dictionary: the batch in it
_BUFFERS, _COMPRESSION = 2, 3  # fields of a batch


def require_plain(data: Any) -> None:
    """Refuse a stream whose bytes would become more in memory.

    Raises:
        ValueError: a buffer is compressed or there twice, or these are no messages.
    """
    view = memoryview(data).cast("B")
    at = 0
    while at < view.nbytes:
        if bytes(view[at : at + 4]) != _MARK:
            raise ValueError("an Arrow stream whose message has no beginning")
        (length,) = _unpacked("<i", view, at + 4)
        at += 8
        if length == 0:
            break
        message = view[at : at + length]
        if length < 0 or message.nbytes < length:
            raise ValueError("an Arrow stream whose message is cut short")
        body = _body_of(_Table(message, *_unpacked("<I", message, 0)))
        at += length + body
    if at != view.nbytes:
        raise ValueError("an Arrow stream that is cut short, or followed by other bytes")


def _body_of(message: _Table) -> int:
    """Return the number of bytes that follow a message, and refuse a message that is not plain."""
    kind, body = message.number(_HEADER_TYPE, "<B"), message.number(_BODY_LENGTH, "<q")
    if kind not in {_SCHEMA, _DICTIONARY, _BATCH} or body < 0:
        raise ValueError("an Arrow stream with a message of another kind")
    if kind != _SCHEMA:
        # Arrow 0.17 noted compression there, and readers still understand it.
        if message.has(_CUSTOM):
            raise ValueError("an Arrow batch with metadata of its own")
        header = message.table(_HEADER)
        _require_plain_batch(header if kind == _BATCH else header.table(_DATA), body)
    return body


def _require_plain_batch(batch: _Table, body: int) -> None:
    if batch.has(_COMPRESSION):
        raise ValueError("an Arrow batch that is compressed")
    sizes = [size for _, size in batch.pairs(_BUFFERS)]
    if any(size < 0 for size in sizes) or sum(sizes) > body:
        raise ValueError("an Arrow batch whose buffers are more than its bytes")


class _Table:
    """A table of a flatbuffer: its fields are found by number, through a list of their places."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self._at = at
        self._places = at - _unpacked("<i", data, at)[0]
        (self._size,) = _unpacked("<H", data, self._places)

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        (offset,) = _unpacked("<H", self._data, self._places + entry)
        return self._at + offset if offset else None

    def has(self, field: int) -> bool:
        return self._place(field) is not None

    def number(self, field: int, form: str) -> int:
        place = self._place(field)
        return 0 if place is None else _unpacked(form, self._data, place)[0]

    def table(self, field: int) -> _Table:
        return _Table(self._data, self._followed(field))

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a list of pairs of 64 bits; an empty one where there is none."""
        if not self.has(field):
            return []
        start = self._followed(field)
        (count,) = _unpacked("<I", self._data, start)
        pairs = self._data[start + 4 : start + 4 + 16 * count]
        if pairs.nbytes != 16 * count:
            raise ValueError("an Arrow message that names a place outside")
        return list(struct.iter_unpack("<qq", pairs))

    def _followed(self, field: int) -> int:
        place = self._place(field)
        if place is None:
            raise ValueError("an Arrow message without a part that it must have")
        return place + int(_unpacked("<I", self._data, place)[0])


def _unpacked(form: str, data: memoryview, at: int) -> tuple[int, ...]:
    if not 0 <= at <= data.nbytes - struct.calcsize(form):  # `struct` takes a place below zero from the end
        raise ValueError("an Arrow message that names a place outside")
    return struct.unpack_from(form, data, at)
