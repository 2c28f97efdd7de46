"""The socket of ``agex studio-site --serve``: the files of a site, on loopback, isolated from other origins.

A page may share memory with its worker only where two headers keep other origins out (the HTML standard:
cross-origin isolation). Shared memory is what stops code that never gives way.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agex.errors import StateError

__all__ = ["SiteServer"]

SECONDS = 30
"""How long a connection may say nothing."""

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
"""Of the files that a site has; the others are data."""
_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Kept, and asked for again each time: a site that was put together anew is seen at once.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, kw_only=True)
class _File:
    """One file, as it is answered."""

    body: bytes
    type: str
    tag: str


class SiteServer(ThreadingHTTPServer):
    """Serves the folder that `build_site` made to the browsers of this machine.

    The files are read once and found by name: no path of a request reaches a file system.

    Args:
        site: the folder.
        port: of 127.0.0.1; 0 takes a free one.

    Attributes:
        address: where to point a browser.

    Raises:
        StateError: the folder is no site.
        OSError: the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = False  # another server on the port is to be an error

    def __init__(self, site: Path, port: int = 0) -> None:
        if not (site / "tab.json").is_file():
            raise StateError(f"{site} is no site; make it first: give --pyodide and --wheels.")
        files = [path for path in site.rglob("*") if path.is_file()]
        self.files = {f"/{path.relative_to(site).as_posix()}": _read(path) for path in files}
        self.files["/"] = self.files["/index.html"]
        super().__init__(("127.0.0.1", port), _Handler)
        own = self.server_address[1]
        self.hosts = frozenset({f"127.0.0.1:{own}", f"localhost:{own}"})
        self.address = f"http://127.0.0.1:{own}/"

    def server_bind(self) -> None:
        """Bind as a socket does: the base class asks the name service who we are."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that end early."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _read(path: Path) -> _File:
    body = path.read_bytes()
    kind = _TYPES.get(path.suffix, "application/octet-stream")
    return _File(body=body, type=kind, tag=f'"{hashlib.sha256(body).hexdigest()[:32]}"')


class _Handler(BaseHTTPRequestHandler):
    server_version, sys_version = "agex", ""
    protocol_version = "HTTP/1.1"
    timeout = SECONDS
    server: SiteServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            self._answer(403, b"This server answers only under its own address on this machine.\n")
            return
        file = self.server.files.get(self.path.partition("?")[0])
        if file is None:
            self._answer(404, b"There is no such file.\n")
        elif self.headers.get("If-None-Match") == file.tag:
            self._answer(304, b"", ETag=file.tag)
        else:
            self._answer(200, file.body, kind=file.type, ETag=file.tag)

    do_HEAD = do_GET  # noqa: N815 - named by the base class

    def _answer(
        self, status: int, body: bytes, *, kind: str = "text/plain; charset=utf-8", **more: str
    ) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **more}.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named by the base class
        """Print nothing: what is asked for is nobody's business."""
