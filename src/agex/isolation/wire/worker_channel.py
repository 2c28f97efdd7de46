"""Channel of a worker to the host: messages, and questions that the host answers.

One side has the turn at any time. The host hands it over with a request; the worker hands it back with
``done``, or for a while with ``ask``, in which the host may call back.
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
    """Block the signals of time limits: half a message would end the connection."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerChannel:
    """Frames to and from the host.

    Args:
        channel: to the host.
        serve: carries out requests of the host while it answers a question.
    """

    def __init__(self, channel: Channel, serve: Callable[[Frame], None]) -> None:
        self._channel = channel
        self._serve = serve
        self._turn = threading.RLock()

    def send(self, header: Mapping[str, Any], parts: Sequence[Any] = ()) -> None:
        """Send the host a message."""
        with self._turn, shielded():
            self._channel.send(header, parts)

    def hand_over(self, header: Mapping[str, Any], parts: Sequence[Any] = ()) -> None:
        """Hand the host the turn with a message. `receive` takes it back.

        Until then the garbage collector is off: it may close a lost file of guest code, and closing asks the
        host, which is not listening.
        """
        gc.disable()
        self.send(header, parts)

    def receive(self) -> Frame:
        """Wait for the host."""
        with shielded():
            frame = self._channel.receive()
        gc.enable()
        return frame

    def close(self) -> None:
        """Close the connection in a process that guest code forked: the host talks to one process only."""
        self._channel.close()

    def ask(
        self, header: Mapping[str, Any], parts: Sequence[Any], require: Callable[[], None] | None = None
    ) -> Frame:
        """Ask the host, and serve its requests until it answers.

        *require* raises an error where it may not be asked: a thread waits here for its turn.
        """
        with self._turn:
            if require is not None:
                require()
            self.hand_over(header, parts)
            while True:
                frame = self.receive()
                if frame.kind == "reply":
                    return frame
                self._serve(frame)
