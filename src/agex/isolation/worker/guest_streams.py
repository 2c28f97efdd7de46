"""Standard streams of full Python in a worker: what its code, its threads and its libraries in C print."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["CapturedDescriptors", "GuestStream", "use_streams"]

_MOST = 1 << 16
"""Bytes that a pipe keeps; what is more is lost, so that a print never blocks."""


class GuestStream(io.TextIOBase):
    """A text stream over a function.

    Args:
        take: takes the text.
        descriptor: that code in C writes to.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, take: Callable[[str], int], descriptor: int) -> None:
        self._take = take
        self._descriptor = descriptor
        self.buffer = _Bytes(take)

    def write(self, text: str) -> int:
        """Take *text*; raise TypeError for anything else, as a file does."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return self._take(str.__str__(text))

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        """Do nothing: later actions print, too."""


class _Bytes(io.RawIOBase):
    """The bytes below a text stream."""

    def __init__(self, take: Callable[[str], int]) -> None:
        self._take = take

    def write(self, data: Any) -> int:
        self._take(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: later actions print, too."""


class CapturedDescriptors:
    """The descriptors 1 and 2, as a pipe that never blocks: code in C prints there, and processes do."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        for end in (self._reader, writer):
            os.set_blocking(end, False)
        for standard in (1, 2):
            os.dup2(writer, standard)
        os.close(writer)
        self._flush_all = ctypes.CDLL(None).fflush

    def take(self) -> str:
        """Return what was printed since it was last taken."""
        self._flush_all(None)
        with contextlib.suppress(OSError):  # nothing is there, or guest code closed it
            return os.read(self._reader, _MOST).decode("utf-8", "replace")
        return ""


def use_streams(take: Callable[[str], int]) -> None:
    """Let ``print``, warnings and the errors of threads go to a function."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = GuestStream(take, descriptor)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
