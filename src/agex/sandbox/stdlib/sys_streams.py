"""``sys.stdout`` and ``sys.stderr`` for guest code.

Both write to the output of the run, because an agent reads one stream. The streams of the process stay as
they are: a redirection belongs to the run.
"""

from __future__ import annotations

import io
import sys
from typing import Any, NoReturn

from agex.errors import SandboxTypeError
from agex.sandbox.runtime.output import CAPTURE

__all__ = ["STREAMS", "Redirected", "write_error"]


class Redirected:
    """An output with one stream redirected."""

    __slots__ = ("below", "stream", "target")

    def __init__(self, stream: str, target: io.StringIO, below: Any) -> None:
        self.stream = stream
        self.target = target
        self.below = below

    def write(self, text: str) -> int:
        """Write text, as an output does."""
        return _write("stdout", self, text)


def _write(stream: str, output: Any, text: str) -> int:
    while type(output) is Redirected:
        if output.stream == stream:
            return io.StringIO.write(output.target, text)
        output = output.below
    return int((sys.stdout if output is None else output).write(text))


def write_error(text: str) -> None:
    """Write to the guest's ``sys.stderr``."""
    _write("stderr", CAPTURE.get(), text)


class TextIOWrapper:
    """A standard stream of guest code, which can only be written to."""

    __slots__ = ("_stream",)
    __module__ = "_io"  # as guests see it

    encoding = "utf-8"
    errors = "strict"
    closed = False

    def __init__(self, stream: str) -> None:
        self._stream = stream

    @property
    def name(self) -> str:
        return f"<{self._stream}>"

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return _write(self._stream, CAPTURE.get(), str.__str__(text))

    def writelines(self, lines: Any, /) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: text is written at once."""

    def isatty(self) -> bool:
        return False

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> NoReturn:
        raise SandboxTypeError("a standard stream cannot be closed here; leave it open")

    def __repr__(self) -> str:
        return f"<_io.TextIOWrapper name='<{self._stream}>' mode='w' encoding='utf-8'>"


STREAMS = {"stdout": TextIOWrapper("stdout"), "stderr": TextIOWrapper("stderr")}
