"""Streamable HTTP for ``agex serve-mcp``: who may ask, and the socket that they ask at.

A web page in somebody's browser can send requests to this machine, and under a name of its own (DNS
rebinding). So a request must name a known host, and if it comes from a page, the page must be of this server.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agex.errors import DefinitionError

if TYPE_CHECKING:
    from mcp.server import Server
    from mcp.server.auth.provider import AccessToken
    from starlette.applications import Starlette

__all__ = ["PATH", "TOKEN", "HttpAddress", "listening", "serve_http"]

PATH = "/mcp"
TOKEN = "AGEX_MCP_TOKEN"  # noqa: S105 - the name of the variable, not the token
"""The environment variable with the token: an argument could be read by every user of the machine."""
TOKEN_CHARS = 16
"""The least of a token; shorter ones are guessed."""
LEAVE = 5
"""Seconds that calls get when the server ends."""


@dataclass(frozen=True, kw_only=True)
class HttpAddress:
    """Where a server listens, and who may ask it."""

    host: str = "127.0.0.1"
    port: int
    """0 takes a free one."""
    names: tuple[str, ...] = ()
    """Under which clients reach it, beside *host* and those of the loopback interface."""
    token: str | None = None
    """That each request has to carry; None for none, on the loopback interface alone."""

    @classmethod
    def read(cls, text: str, names: Sequence[str] = ()) -> HttpAddress:
        """Read ``PORT``, ``HOST:PORT`` or ``[IPV6]:PORT``; the token comes from the environment.

        Raises:
            DefinitionError: it is no address, or one that others can reach and no token protects.
        """
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not (port.isascii() and port.isdigit() and int(port) < 1 << 16) or (":" in host) != ("[" in text):
            raise DefinitionError(
                f"--http {text!r} is no address; give PORT, HOST:PORT or [IPV6]:PORT, e.g. --http 8000."
            )
        address = cls(host=host, port=int(port), names=tuple(names), token=_token())
        if not _is_loopback(host) and address.token is None:
            raise DefinitionError(
                f"--http {text}: others can reach {host}, and whoever does could run the tasks. Put a token "
                f"that clients send as 'Authorization: Bearer ...' into {TOKEN}, or leave the host out."
            )
        if host in ("0.0.0.0", "::") and not names:  # noqa: S104 - it is refused here
            raise DefinitionError(
                f"--http {text}: {host} is every address of this machine; say under which names clients "
                "reach it, e.g. --allow-host tools.example.org."
            )
        return address

    def hosts(self, port: int) -> list[str]:
        """Return the values of the ``Host`` header that are answered."""
        names = [_bracketed(self.host), "127.0.0.1", "localhost", "[::1]"]
        return [f"{name}:{port}" for name in names] + [
            each for name in self.names for each in (name, f"{name}:{port}")
        ]

    def url(self, port: int) -> str:
        """Return where clients ask."""
        return f"http://{_bracketed(self.host)}:{port}{PATH}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _token() -> str | None:
    token = os.environ.get(TOKEN)
    if token is None:
        return None
    if len(token) < TOKEN_CHARS or not (token.isascii() and token.isprintable()) or " " in token:
        raise DefinitionError(
            f"{TOKEN} is no token: give {TOKEN_CHARS} or more letters, digits and signs, "
            "e.g. from: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(address: HttpAddress) -> socket.socket:
    """Return the socket of an address.

    Raises:
        DefinitionError: it cannot be had.
    """
    try:
        return socket.create_server(
            (address.host, address.port),
            family=socket.AF_INET6 if ":" in address.host else socket.AF_INET,
        )
    except OSError as error:
        raise DefinitionError(
            f"--http: {address.host}:{address.port} cannot be had: {error.strerror or error}; "
            "give another one."
        ) from error


async def serve_http(server: Server[Any], address: HttpAddress) -> None:
    """Serve until the process is told to end."""
    import uvicorn

    with listening(address) as bound:
        port = bound.getsockname()[1]
        logging.getLogger("mcp").setLevel(logging.WARNING)
        config = uvicorn.Config(
            _app(server, address, port),
            log_level="warning",
            access_log=False,
            ws="none",
            timeout_graceful_shutdown=LEAVE,
        )
        print(f"serving at {address.url(port)}", file=sys.stderr, flush=True)
        await uvicorn.Server(config).serve(sockets=[bound])


def _app(server: Server[Any], address: HttpAddress, port: int) -> Starlette:
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.transport_security import TransportSecuritySettings
    from pydantic import AnyHttpUrl

    hosts = address.hosts(port)
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )
    if address.token is None:
        return server.streamable_http_app(transport_security=security)
    return server.streamable_http_app(
        transport_security=security,
        # The SDK checks tokens as part of OAuth; there is no server here that would issue any.
        auth=AuthSettings(issuer_url=AnyHttpUrl(address.url(port)), resource_server_url=None),
        token_verifier=_OneToken(address.token),
    )


class _OneToken:
    """Lets one token in."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        from mcp.server.auth.provider import AccessToken

        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        return AccessToken(token=token, client_id="agex", scopes=[])
