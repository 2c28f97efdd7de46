"""Passing of descriptors over a unix socket, and closing of those that a forked process must not have."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections.abc import Collection, Sequence
from typing import Any

__all__ = ["close_all_but", "receive_order", "send_order"]

_LENGTH = struct.Struct("<I")
_MOST_DESCRIPTORS = 8


def send_order(
    control: socket.socket, order: Any, data: bytes = b"", descriptors: Sequence[int] = ()
) -> None:
    """Send a small order, bytes and descriptors between a host and its zygote, which trust each other."""
    text = json.dumps([order, len(data)]).encode()
    first = _LENGTH.pack(len(text))
    rights = (
        [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())]
        if descriptors
        else []
    )
    control.sendmsg([first], rights)
    control.sendall(text + data)


def receive_order(control: socket.socket) -> tuple[Any, bytes, list[int]]:
    """Receive an order of `send_order`.

    Raises:
        EOFError: the other end is gone.
    """
    room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
    first, ancillary, _, _ = control.recvmsg(_LENGTH.size, room, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    descriptors: list[int] = []
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found = array.array("i")
            found.frombytes(content)
            descriptors += found
    first += _exactly(control, _LENGTH.size - len(first))
    order, size = json.loads(_exactly(control, _LENGTH.unpack(first)[0]))
    return order, _exactly(control, size), descriptors


def _exactly(control: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        piece = control.recv(count - len(found))
        if not piece:
            raise EOFError("the other end is gone")
        found += piece
    return bytes(found)


def close_all_but(kept: Collection[int]) -> None:
    """Close every descriptor of this process but these."""
    first = 0
    for last in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        if first < last:  # for an empty range, os.closerange closes everything there is
            os.closerange(first, last)
        first = last + 1
