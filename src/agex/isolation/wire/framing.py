"""Messages as frames on a stream: a small JSON header, and parts of bytes.

::

    frame  = header length, parts, kind, total of the parts    16 bytes, little-endian
             length of each part                               8 bytes each
             header (JSON)
             the parts, one after the other, or in a sealed memfd that comes with the header

The other end may be hostile. Every length is checked against a limit before memory is reserved for it, a
memfd is mapped only if its seals forbid all changes, and every wait has a deadline.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import mmap
import os
import select
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from agex.isolation.wire.error_codec import ProtocolError, WorkerGone

__all__ = ["Bounds", "Buffer", "Channel", "Frame", "Pipes", "SocketStream", "Stream"]

Buffer: TypeAlias = bytes | bytearray | memoryview

_PREFIX = struct.Struct("<IHHQ")
_SIZE = struct.Struct("<Q")
_INLINE, _SHARED = 1, 2
_MEMFD_BYTES = 256 * 1024
"""Parts of this size together cross in shared memory: below, a mapping costs more than it saves."""
_SEALS = (
    getattr(fcntl, "F_SEAL_SHRINK", 2) | getattr(fcntl, "F_SEAL_GROW", 4) | getattr(fcntl, "F_SEAL_WRITE", 8)
)
_MOST_AT_ONCE = 512  # of IOV_MAX, which is 1024 on Linux


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Limits of one frame."""

    header: int = 4 << 20
    """Bytes of its header."""
    parts: int = 4096
    """Their number."""
    total: int = 4 << 30
    """Bytes of all parts."""


@dataclass(frozen=True)
class Frame:
    """A message as it came."""

    header: Mapping[str, Any]
    parts: tuple[memoryview, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the message."""
        return str(self.header.get("k"))


class Stream(Protocol):
    """Bytes to and from the other end, and perhaps descriptors."""

    shares_memory: bool
    """Whether descriptors can be sent."""

    def read_into(self, view: memoryview, deadline: float | None) -> int:
        """Read some bytes; 0 at the end. Raises TimeoutError at the deadline, a `time.monotonic`."""
        ...

    def write(self, parts: Sequence[Buffer], descriptor: int | None, deadline: float | None) -> None:
        """Write all bytes, and a descriptor with the first of them."""
        ...

    def taken_descriptor(self) -> int | None:
        """Return the descriptor that came with the last bytes; the caller owns it from now on."""
        ...

    def close(self) -> None:
        """Close both directions."""
        ...


class Channel:
    """Frames over a stream.

    Raises (all methods):
        WorkerGone: the other end closed the stream.
        ProtocolError: the bytes are no frame, or too large.
        TimeoutError: nothing, or not all of it, came or could be written until the deadline.
    """

    def __init__(self, stream: Stream, bounds: Bounds | None = None) -> None:
        self._stream = stream
        self._bounds = bounds or Bounds()

    def send(
        self, header: Mapping[str, Any], parts: Sequence[Buffer] = (), *, deadline: float | None = None
    ) -> None:
        """Write one frame."""
        views = [memoryview(part).cast("B") for part in parts]
        sizes = [view.nbytes for view in views]
        text = json.dumps(header, separators=(",", ":")).encode()
        total = sum(sizes)
        self._require_within(len(text), len(sizes), total)
        shared = total >= _MEMFD_BYTES and self._stream.shares_memory
        prefix = _PREFIX.pack(len(text), len(sizes), _SHARED if shared else _INLINE, total)
        head = b"".join([prefix, *map(_SIZE.pack, sizes), text])
        if not shared:
            self._stream.write([head, *views], None, deadline)
            return
        with _sealed(views) as descriptor:
            self._stream.write([head], descriptor, deadline)

    def receive(self, *, deadline: float | None = None) -> Frame:
        """Read one frame."""
        length, count, kind, total = _PREFIX.unpack(self._read(_PREFIX.size, deadline))
        if kind not in {_INLINE, _SHARED}:
            raise ProtocolError(f"a frame is of kind {kind}, which no frame is")
        self._require_within(length, count, total)
        about = self._read(_SIZE.size * count + length, deadline)
        sizes = [size for (size,) in _SIZE.iter_unpack(memoryview(about)[: _SIZE.size * count])]
        if sum(sizes) != total:
            raise ProtocolError("the parts of a frame are not as long as it says")
        header = _header(about[_SIZE.size * count :])
        descriptor = self._stream.taken_descriptor()
        if kind == _SHARED:
            memory = _mapped(descriptor, total)
        elif descriptor is None:
            memory = memoryview(self._read(total, deadline))
        else:
            os.close(descriptor)
            raise ProtocolError("a descriptor came with a frame that needs none")
        return Frame(header, tuple(_cut(memory, sizes)))

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def _require_within(self, header: int, parts: int, total: int) -> None:
        for what, size, most in (
            ("header", header, self._bounds.header),
            ("number of parts", parts, self._bounds.parts),
            ("size", total, self._bounds.total),
        ):
            if size > most:
                raise ProtocolError(f"the {what} of a message is {size:,}, and {most:,} is the most")

    def _read(self, count: int, deadline: float | None) -> bytearray:
        """Read exactly *count* bytes. Memory is reserved as they come, up to twice as much."""
        data = bytearray(min(count, 1 << 20))
        at = 0
        while at < count:
            if at == len(data):
                data.extend(bytes(min(len(data), count - len(data))))
            with memoryview(data) as view:
                read = self._stream.read_into(view[at:], deadline)
            if not read:
                raise WorkerGone("the other end closed the connection")
            at += read
        return data


def _cut(memory: memoryview, sizes: Sequence[int]) -> Iterator[memoryview]:
    at = 0
    for size in sizes:
        yield memory[at : at + size]
        at += size


def _header(text: bytearray) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the header of a frame is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ProtocolError("the header of a frame is not an object")
    return header


@contextlib.contextmanager
def _sealed(views: Sequence[memoryview]) -> Iterator[int]:
    """Return a sealed memfd with the parts one after the other."""
    descriptor = os.memfd_create("agex", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        for view in views:
            at = 0
            while at < view.nbytes:
                at += os.write(descriptor, view[at:])
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        yield descriptor
    finally:
        os.close(descriptor)


def _mapped(descriptor: int | None, size: int) -> memoryview:
    """Map a sealed memfd, privately: writes to the mapping stay here."""
    if descriptor is None:
        raise ProtocolError("a frame says that its parts are in shared memory, and none came")
    try:
        if fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
            raise ProtocolError("shared memory came that its sender can still change")
        if os.fstat(descriptor).st_size != size or not size:
            raise ProtocolError("shared memory is not as large as its frame says")
        return memoryview(mmap.mmap(descriptor, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE))
    except OSError as error:
        raise ProtocolError(f"a descriptor came that is no shared memory: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the other end took too long")
    return left


def _ready(descriptor: int, events: int, deadline: float | None) -> None:
    """Wait until a descriptor can be read or written."""
    poll = select.poll()
    poll.register(descriptor, events)
    while True:
        left = _left(deadline)
        if poll.poll(None if left is None else left * 1000 + 1):
            return


class SocketStream:
    """A unix socket, which carries descriptors too."""

    shares_memory = hasattr(os, "memfd_create")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._descriptor: int | None = None

    def read_into(self, view: memoryview, deadline: float | None) -> int:
        while True:
            try:
                count, ancillary, _, _ = self._socket.recvmsg_into([view], _CONTROL, _CMSG_CLOEXEC)
            except BlockingIOError:
                _ready(self._socket.fileno(), select.POLLIN, deadline)
                continue
            except ConnectionError:
                return 0
            self._take(ancillary)
            return count

    def _take(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(data[: len(data) - len(data) % found.itemsize])
                for descriptor in found:
                    if self._descriptor is None:
                        self._descriptor = descriptor
                    else:
                        os.close(descriptor)

    def taken_descriptor(self) -> int | None:
        descriptor, self._descriptor = self._descriptor, None
        return descriptor

    def write(self, parts: Sequence[Buffer], descriptor: int | None, deadline: float | None) -> None:
        rights = (
            []
            if descriptor is None
            else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", descriptor))]
        )
        rest = [view for part in parts if (view := memoryview(part)).nbytes]
        while rest:
            try:
                sent = self._socket.sendmsg(rest[:_MOST_AT_ONCE], rights)
            except BlockingIOError:
                _ready(self._socket.fileno(), select.POLLOUT, deadline)
                continue
            except ConnectionError:
                raise WorkerGone("the other end closed the connection") from None
            rights = []
            rest = _after(rest, sent)

    def close(self) -> None:
        if (descriptor := self.taken_descriptor()) is not None:
            os.close(descriptor)
        self._socket.close()


_CONTROL = socket.CMSG_SPACE(struct.calcsize("i")) if hasattr(socket, "CMSG_SPACE") else 0
"""Room for one descriptor: the kernel closes what is sent beyond it."""
_CMSG_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Pipes:
    """Two descriptors, one to read from and one to write to."""

    shares_memory = False

    def __init__(self, reader: int, writer: int) -> None:
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        self._reader, self._writer = reader, writer

    def read_into(self, view: memoryview, deadline: float | None) -> int:
        while True:
            try:
                return os.readv(self._reader, [view])
            except BlockingIOError:
                _ready(self._reader, select.POLLIN, deadline)
            except ConnectionError:
                return 0

    def taken_descriptor(self) -> int | None:
        return None

    def write(self, parts: Sequence[Buffer], descriptor: int | None, deadline: float | None) -> None:
        rest = [view for part in parts if (view := memoryview(part)).nbytes]
        while rest:
            try:
                sent = os.writev(self._writer, rest[:_MOST_AT_ONCE])
            except BlockingIOError:
                _ready(self._writer, select.POLLOUT, deadline)
                continue
            except ConnectionError:
                raise WorkerGone("the other end closed the connection") from None
            rest = _after(rest, sent)

    def close(self) -> None:
        for descriptor in {self._reader, self._writer}:
            os.close(descriptor)


def _after(rest: list[memoryview], sent: int) -> list[memoryview]:
    """Drop the first *sent* bytes."""
    for i, view in enumerate(rest):
        if sent < view.nbytes:
            return [view[sent:], *rest[i + 1 :]]
        sent -= view.nbytes
    return []
