"""The page's own ``fetch``."""

# js and pyodide are there in a tab only.
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agex.browser.host import ffi, page

if TYPE_CHECKING:
    from agex.browser.model import Response, Sending

__all__ = ["post"]


class _Fetched:
    def __init__(self, response: Any) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.headers.entries()}
        self._response = response

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        JsException = ffi().JsException  # noqa: N806 - a class

        if not self._response.body:
            return
        reader = self._response.body.getReader()
        while True:
            try:
                piece = await reader.read()
            except JsException as error:
                raise OSError(f"the connection broke off: {error.message}") from None
            if piece.done:
                return
            yield piece.value.to_bytes()


@asynccontextmanager
async def post(sending: Sending) -> AsyncIterator[Response]:
    """Post something; leaving the block gives the connection up.

    Raises:
        OSError: it could not be sent.
    """
    js = page()
    JsException = ffi().JsException  # noqa: N806 - a class
    to_js = ffi().to_js

    abort = js.AbortController.new()
    options = {
        "method": "POST",
        "headers": dict(sending.headers),
        "body": sending.body,
        "signal": abort.signal,
        "credentials": "omit",
        "redirect": "error",  # it would be sent the key
        "referrerPolicy": "no-referrer",
        "cache": "no-store",
    }
    try:
        response = await js.fetch(sending.url, to_js(options, dict_converter=js.Object.fromEntries))
    except JsException as error:
        # Of what failed a page is told nothing: a server that is down looks like one that forbids the page.
        raise OSError(
            f"{error.message}: there is no such server, or it does not allow this page to ask it (CORS)"
        ) from None
    except BaseException:
        abort.abort()
        raise
    try:
        yield _Fetched(response)
    finally:
        abort.abort()
