"""Access control of the server, decided from a request's parts alone, without a socket.

Anybody on this machine who can reach the port gets the page's files. The contents of a state need the
token, which stands in the address that ``agex studio`` prints, behind the ``#``: a browser sends that
part nowhere. The page sends the token in a header. Pages of other origins cannot set it without a
preflight request, and none is answered. The check of ``Host`` keeps out names that were made to point
here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import importlib.resources
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from agex.errors import AgexError
from agex.studio.api import Api, NotHere, Refused
from agex.studio.figures import FIGURE, Drawing, drawing, with_figures

__all__ = ["Gate", "Reply", "Request", "page_files"]

BODY_BYTES = 10_000
"""Of what the page may send: a branch's name and a commit."""

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_META = re.compile(r'http-equiv="Content-Security-Policy"\s+content="([^"]+)"')


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it came."""

    method: str
    target: str
    """Path and query."""
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | None = b""
    """None where it is too large to be read, or does not say how large it is."""

    def all(self, name: str) -> list[str]:
        """Return every value of a header."""
        return [value for key, value in self.headers if key.lower() == name]

    def one(self, name: str) -> str | None:
        """Return the value of a header that is given once."""
        found = self.all(name)
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The answer to a request."""

    status: int
    body: bytes
    type: str
    headers: dict[str, str] = field(default_factory=dict)


def page_files() -> dict[str, bytes]:
    """Return the files of the page by the path that each is served under."""
    folder = importlib.resources.files("agex.studio").joinpath("page")
    return {
        each.name: each.read_bytes()
        for each in folder.iterdir()
        if each.is_file() and each.name.rpartition(".")[2] in _TYPES
    }


class Gate:
    """Answers requests: with the page to anybody, with the state's contents to a holder of the token.

    Args:
        api: what is asked.
        token: what must be known.
        hosts: the names, with port, that this server has.
    """

    def __init__(self, api: Api, *, token: str, hosts: Sequence[str]) -> None:
        self._api = api
        self._token = token
        self._hosts = frozenset(hosts)
        # They are read once and found by name: no path of a request ever reaches a file system.
        self._page = page_files()
        self._drawing = drawing()
        index = self._page["index.html"].replace(b'content="tab"', b'content="server"', 1)
        if self._drawing is not None:
            index = with_figures(index)
        self._page |= {"": index, "index.html": index}
        found = _META.search(index.decode())
        assert found is not None, "the page names its own policy"
        frames = " ".join(f"http://{host}/{FIGURE}" for host in hosts)
        policy = found[1].replace("frame-src 'self'", f"frame-src {frames}")
        self._headers = {
            # A header may say what a meta element cannot: who may show this page in a frame.
            "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }

    def answer(self, request: Request) -> Reply:
        """Answer a request; what must not be answered is refused with a reason."""
        reply = self._refusal(request) or self._reply(request)
        return Reply(
            status=reply.status, body=reply.body, type=reply.type, headers={**self._headers, **reply.headers}
        )

    def _refusal(self, request: Request) -> Reply | None:
        host, origin, site = (request.all(name) for name in ("host", "origin", "sec-fetch-site"))
        if len(host) != 1 or host[0].lower() not in self._hosts:
            return _error(403, "This server answers only under its own address on this machine.")
        if any(each != f"http://{host[0]}" for each in origin):
            return _error(403, "Pages of other origins are not answered.")
        if any(each not in {"same-origin", "none"} for each in site):
            return _error(403, "Pages of other sites are not answered.")
        if request.body is None:
            return _error(413, f"At most {BODY_BYTES} bytes are read, and their number must be said.")
        return None

    def _reply(self, request: Request) -> Reply:
        try:
            parts = urlsplit(request.target)
        except ValueError:
            return _error(400, "This is no address.")
        path = parts.path.removeprefix("/")
        if path.startswith("api/"):
            return self._api_reply(request, path.removeprefix("api/"), parts.query)
        is_figure = path == FIGURE and self._drawing is not None
        if path not in self._page and not is_figure:
            return _error(404, "There is no such page.")
        if request.method != "GET":
            return _error(405, "A page can only be read.", Allow="GET")
        if self._drawing is not None and is_figure:
            return self._figure(self._drawing)
        kind = path.rpartition(".")[2] if path else "html"
        return Reply(status=200, body=self._page[path], type=_TYPES[kind])

    def _figure(self, drawing: Drawing) -> Reply:
        """Return the document that only the page may show in a frame."""
        ancestors = " ".join(f"http://{host}" for host in sorted(self._hosts))
        return Reply(
            status=200,
            body=drawing.document,
            type=_TYPES["html"],
            headers={
                "Content-Security-Policy": "sandbox allow-scripts; "
                f"{drawing.policy}; frame-ancestors {ancestors}",
                "X-Frame-Options": "SAMEORIGIN",
            },
        )

    def _api_reply(self, request: Request, what: str, query: str) -> Reply:
        given = request.one("authorization") or ""
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return _error(401, "Open the address that `agex studio` printed: the token is missing or wrong.")
        try:
            if what in self._api.changes:
                return self._told(request, what)
            if request.method != "GET":
                return _error(405, "This can only be read.", Allow="GET")
            return _json(200, self._api.ask(what, dict(parse_qsl(query))))
        except NotHere as error:
            return _error(404, str(error))
        except Refused as error:
            return _error(400, str(error))
        except AgexError as error:
            return _error(500, f"{type(error).__name__}: {error}")

    def _told(self, request: Request, what: str) -> Reply:
        if request.method != "POST":
            return _error(405, "This changes something; send it.", Allow="POST")
        if not request.all("origin"):
            return _error(403, "A browser says which page it sends for; this request does not.")
        if request.one("content-type") != "application/json":
            return _error(415, "Send application/json.")
        try:
            document = json.loads(request.body or b"")
        except ValueError:
            raise Refused("What was sent is no JSON.") from None
        if type(document) is not dict or not all(type(value) is str for value in document.values()):
            raise Refused("What was sent is not an object of texts.")
        return _json(200, self._api.tell(what, document))


def _json(status: int, document: Any) -> Reply:
    # Text that an agent wrote may hold lone surrogates: escaped, they are JSON.
    return Reply(status=status, body=json.dumps(document).encode("ascii"), type="application/json")


def _error(status: int, message: str, **headers: str) -> Reply:
    reply = _json(status, {"error": message})
    return Reply(status=status, body=reply.body, type=reply.type, headers=headers)
