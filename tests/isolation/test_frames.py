"""Frames between two ends, one of which may be hostile.

Stopped by: isolation.wire.framing.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agex.isolation.wire.error_codec import ProtocolError, WorkerGone
from agex.isolation.wire.framing import Bounds, Channel, Pipes, SocketStream


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    channel = Channel(SocketStream(ours), Bounds(header=1000, parts=10, total=10 << 20))
    yield channel, theirs
    channel.close()
    theirs.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def soon() -> float:
    return time.monotonic() + 5


def frame(
    header: bytes, sizes: list[int], body: bytes = b"", *, kind: int = 1, total: int | None = None
) -> bytes:
    head = struct.pack("<IHHQ", len(header), len(sizes), kind, sum(sizes) if total is None else total)
    return head + b"".join(struct.pack("<Q", size) for size in sizes) + header + body


def send_with(sock: socket.socket, data: bytes, descriptors: list[int]) -> None:
    rights = array.array("i", descriptors).tobytes()
    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


def memfd(content: bytes, *, sealed: bool) -> int:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.write(descriptor, content)
    if sealed:
        fcntl.fcntl(
            descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        )
    return descriptor


@pytest.mark.parametrize("size", [0, 1, 100_000, 5 << 20])
def test_a_frame_arrives_as_it_was_sent(ends, size):
    channel, theirs = ends
    other = Channel(SocketStream(theirs.dup()))
    content = os.urandom(size)
    sender = threading.Thread(target=other.send, args=({"k": "x", "n": [1, "ü"]}, [b"a", content, b""]))
    sender.start()
    found = channel.receive(deadline=soon())
    sender.join()
    other.close()
    assert (found.kind, dict(found.header)) == ("x", {"k": "x", "n": [1, "ü"]})
    assert [bytes(part) for part in found.parts] == [b"a", content, b""]


def test_a_frame_arrives_over_pipes():
    reader, writer = os.pipe()
    other, unused = os.pipe()
    sender, receiver = Channel(Pipes(other, writer)), Channel(Pipes(reader, unused))
    content = os.urandom(3 << 20)
    thread = threading.Thread(target=sender.send, args=({"k": "x"}, [content]))
    thread.start()
    found = receiver.receive(deadline=soon())
    thread.join()
    assert bytes(found.parts[0]) == content
    sender.close()
    receiver.close()


def test_large_parts_are_mapped_and_may_be_written_to_without_changing_the_senders(ends):
    channel, theirs = ends
    content = memfd(b"\x00" * (1 << 20), sealed=True)
    send_with(theirs, frame(b"{}", [1 << 20], kind=2), [content])
    found = channel.receive(deadline=soon())
    found.parts[0][0] = 7
    assert (found.parts[0][0], os.pread(content, 1, 0)) == (7, b"\x00")
    os.close(content)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (frame(b"not json", []), "not JSON"),
        (frame(b"[1]", []), "not an object"),
        (frame(b"[" * 900, []), "not JSON"),
        (frame(b"\xff\xfe", []), "not JSON"),
        (frame(b"{}", [1], b"x", kind=7), "of kind 7"),
        (frame(b"{}", [1], b"x", total=5), "not as long"),
        (struct.pack("<IHHQ", 2**32 - 1, 0, 1, 0), "the header of a message is 4,294,967,295"),
        (struct.pack("<IHHQ", 2, 60_000, 1, 0), "the number of parts"),
        (struct.pack("<IHHQ", 2, 1, 1, 2**63), "the size of a message"),
        (frame(b"{}", [2**63, 2**63], total=4), "not as long"),
        (frame(b"{}", [1 << 20], kind=2), "none came"),
    ],
)
def test_what_is_no_frame_is_refused(ends, data, message):
    channel, theirs = ends
    theirs.sendall(data)
    with pytest.raises(ProtocolError, match=message):
        channel.receive(deadline=soon())


def test_memory_that_its_sender_can_still_change_is_not_mapped(ends):
    channel, theirs = ends
    content = memfd(b"x" * 4096, sealed=False)
    send_with(theirs, frame(b"{}", [4096], kind=2), [content])
    os.close(content)
    with pytest.raises(ProtocolError, match="can still change"):
        channel.receive(deadline=soon())


def test_memory_of_another_size_than_said_is_not_mapped(ends):
    channel, theirs = ends
    content = memfd(b"x" * 4096, sealed=True)
    send_with(theirs, frame(b"{}", [1 << 20], kind=2), [content])
    os.close(content)
    with pytest.raises(ProtocolError, match="not as large"):
        channel.receive(deadline=soon())


def test_a_descriptor_that_is_no_memory_is_not_mapped(ends):
    channel, theirs = ends
    send_with(theirs, frame(b"{}", [1 << 20], kind=2), [theirs.fileno()])
    with pytest.raises(ProtocolError, match="no shared memory"):
        channel.receive(deadline=soon())


def test_descriptors_that_nobody_asked_for_are_closed(ends):
    channel, theirs = ends
    before = open_descriptors()
    reader, writer = os.pipe()
    send_with(theirs, frame(b"{}", [1], b"x"), [writer] * 5)
    os.close(writer)
    with pytest.raises(ProtocolError, match="needs none"):
        channel.receive(deadline=soon())
    assert os.read(reader, 1) == b""  # nobody has the other end
    os.close(reader)
    assert open_descriptors() == before


def test_a_sender_that_goes_away_within_a_frame_is_gone(ends):
    channel, theirs = ends
    theirs.sendall(frame(b"{}", [100], b"x"))
    theirs.shutdown(socket.SHUT_RDWR)
    with pytest.raises(WorkerGone):
        channel.receive(deadline=soon())


def test_a_slow_drip_ends_at_the_deadline(ends):
    channel, theirs = ends
    theirs.sendall(frame(b"{}", [100], b"x"))
    with pytest.raises(TimeoutError):
        channel.receive(deadline=time.monotonic() + 0.05)


def test_a_receiver_that_does_not_read_ends_the_sending_at_the_deadline():
    channel = Channel(Pipes(*os.pipe()))
    deadline = time.monotonic() + 0.05
    with pytest.raises(TimeoutError):
        channel.send({"k": "x"}, [b"x" * 200_000], deadline=deadline)
    channel.close()


def test_a_length_reserves_no_memory_before_its_bytes_come():
    import tracemalloc

    ours, theirs = socket.socketpair()
    channel = Channel(SocketStream(ours))
    theirs.sendall(frame(b"{}", [3 << 30]))
    tracemalloc.start()
    with pytest.raises(TimeoutError):
        channel.receive(deadline=time.monotonic() + 0.05)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    channel.close()
    theirs.close()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_a_frame_or_refused(data, as_frame):
    ours, theirs = socket.socketpair()
    channel = Channel(SocketStream(ours))
    theirs.sendall(frame(data, []) if as_frame else data)
    theirs.shutdown(socket.SHUT_WR)
    try:
        assert isinstance(channel.receive(deadline=soon()).header, dict)
    except (ProtocolError, WorkerGone):
        pass
    finally:
        channel.close()
        theirs.close()
