"""The worker's end of the connection: what it tells the host, and what it asks of it.

One side has the turn at any time. The host gives it to the worker with a request; the worker
gives it back with ``done``, or for a while with ``ask``, in which the host may call back.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agex.isolation.wire.framing import Channel, Frame

__all__ = ["WorkerChannel", "shielded"]

_SIGNALS = {signal.SIGALRM, signal.SIGUSR1}


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Let no time limit strike: half a message would be the end of the connection."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerChannel:
    """Frames to and from the host.

    Args:
        channel: to the host.
        serve: carries out what the host requests while it is asked for something.
    """

    def __init__(self, channel: Channel, serve: Callable[[Frame], None]) -> None:
        self._channel = channel
        self._serve = serve
        self._turn = threading.RLock()

    def send(self, header: Mapping[str, Any], parts: Sequence[Any] = ()) -> None:
        """Tell the host something."""
        with self._turn, shielded():
            self._channel.send(header, parts)

    def hand_over(self, header: Mapping[str, Any], parts: Sequence[Any] = ()) -> None:
        """Return the host the turn with a message. `receive` takes it back.

        Until then nothing is collected: a file of the guest's that is found to be lost is closed, and
        closing it asks the host, who is not listening.
        """
        gc.disable()
        self.send(header, parts)

    def receive(self) -> Frame:
        """Wait for the host."""
        with shielded():
            frame = self._channel.receive()
        gc.enable()
        return frame

    def ask(self, header: Mapping[str, Any], parts: Sequence[Any]) -> Frame:
        """Ask the host, and do what it wants done before it answers."""
        with self._turn:
            self.hand_over(header, parts)
            while True:
                frame = self.receive()
                if frame.kind == "reply":
                    return frame
                self._serve(frame)
