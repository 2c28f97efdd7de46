"""The socket of ``agex studio``: HTTP of the standard library, on loopback."""

from __future__ import annotations

import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agex.studio.api import Api
from agex.studio.gate import BODY_BYTES, Gate, Reply, Request

__all__ = ["StudioServer"]

SECONDS = 30
"""How long a connection may say nothing."""


class StudioServer(ThreadingHTTPServer):
    """Serves the page and one state to the browsers of this machine.

    Args:
        api: the state.
        port: of 127.0.0.1; 0 takes a free one.

    Attributes:
        address: where to point a browser, with the token.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = False  # another server on the port is to be an error

    def __init__(self, api: Api, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        own = self.server_address[1]
        token = secrets.token_urlsafe(32)
        self.gate = Gate(api, token=token, hosts=[f"127.0.0.1:{own}", f"localhost:{own}"])
        self.address = f"http://127.0.0.1:{own}/#token={token}"

    def server_bind(self) -> None:
        """Bind as a socket does: the base class asks the name service who we are."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that end early."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One request a connection: nothing of one can be taken for the next."""

    server_version, sys_version = "agex", ""
    timeout = SECONDS

    def _handle(self) -> None:
        try:
            reply = self._answer()
        except Exception:
            self.send_error(500)
            raise
        self.send_response(reply.status)
        headers = {**reply.headers, "Content-Type": reply.type, "Content-Length": str(len(reply.body))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = _handle  # noqa: N815 - named by the base

    def _answer(self) -> Reply:
        length = self.headers.get("Content-Length", "0")
        size = int(length) if length.isascii() and length.isdecimal() else BODY_BYTES + 1
        fits = size <= BODY_BYTES and "Transfer-Encoding" not in self.headers
        assert isinstance(self.server, StudioServer)
        return self.server.gate.answer(
            Request(
                method=self.command,
                target=self.path,
                headers=self.headers.items(),
                body=self.rfile.read(size) if fits else None,
            )
        )

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by the base class
        """Print nothing: the address of a request is nobody's business."""
