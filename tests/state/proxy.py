"""A connection that is lost at a moment of one's choice: a proxy on loopback before a real server."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Passes bytes on, until it is told to lose a connection.

    Attributes:
        port: of 127.0.0.1.
        requests: how many times a client has sent something.
        lose_at: of these, the number at which its connection is lost; 0 for none.
        answered: whether the server gets that request, and only the answer is lost.
        refuse: whether nobody gets a connection any more, once one is lost.
        lose_when: asked before each answer is passed on; where it says so, the connection is lost instead.
    """

    port: int
    to: int
    requests: int = 0
    lose_at: int = 0
    answered: bool = True
    refuse: bool = False
    lose_when: Callable[[], bool] | None = None
    down: bool = False
    _held: list[socket.socket] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lose(self, number: int, *, answered: bool, refuse: bool = False) -> None:
        """Lose the connection at the request of that number from now on."""
        with self._lock:
            self.requests, self.lose_at = 0, number
            self.answered, self.refuse = answered, refuse

    def mend(self) -> None:
        """Let everything through again."""
        with self._lock:
            self.lose_at, self.down, self.lose_when = 0, False, None

    def serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            if self.down:
                return
            server = socket.create_connection(("127.0.0.1", self.to))
            with server:
                self._held += [client, server]
                lost = threading.Event()
                back = threading.Thread(target=self._answer, args=(server, client, lost), daemon=True)
                back.start()
                try:
                    self._pass_on(client, server, lost, back)
                finally:
                    for end in (server, client):  # closing alone wakes nobody who waits for it
                        with contextlib.suppress(OSError):
                            end.shutdown(socket.SHUT_RDWR)

    def _pass_on(
        self, client: socket.socket, server: socket.socket, lost: threading.Event, back: threading.Thread
    ) -> None:
        while data := client.recv(1 << 16):
            with self._lock:
                self.requests += 1
                losing = self.requests == self.lose_at
                if losing:
                    self.down = self.refuse
            if losing and not self.answered:
                return
            if losing:
                lost.set()
            server.sendall(data)
            if losing:
                back.join(0.2)  # a part of a request has no answer
                return

    def _answer(self, server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if lost.is_set():
                    return
                if self.lose_when is not None and self.lose_when():
                    self.lose_when = None
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


@contextlib.contextmanager
def proxy_before(port: int) -> Iterator[Proxy]:
    """Run a proxy before the server at a port of 127.0.0.1."""
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = Proxy(port=listener.getsockname()[1], to=port)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=proxy.serve, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        # A thread that waits in accept() is woken by shutdown, not by close.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for held in proxy._held:
            with contextlib.suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
        thread.join()
