"""A model behind an endpoint for chat completions, asked from a browser tab."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias
from urllib.parse import urlsplit

from agex.browser.chat import Answer, failure, payload
from agex.errors import ModelNotConfigured
from agex.models.base import Model, ModelError, OnText, Profile, Reply, Request

__all__ = ["FetchModel", "Response", "Transport"]

_MOST_BYTES = 16 * 1024 * 1024
"""Of one answer: far more than any model writes, and less than a tab has."""


class Response(Protocol):
    """A server's answer."""

    status: int
    headers: Mapping[str, str]
    """By name, in small letters."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sending:
    """One request over HTTP."""

    url: str
    headers: Mapping[str, str]
    body: bytes


Transport: TypeAlias = Callable[[Sending], AbstractAsyncContextManager[Response]]
"""Posts something, and gives up the connection at the end of the block. ``OSError``: it could not be sent."""


def _fetch(sending: Sending) -> AbstractAsyncContextManager[Response]:
    from agex.browser.fetch import post  # only there is a fetch

    return post(sending)


class FetchModel(Model):
    """Ask a server that speaks OpenAI's chat completions, over the page's own ``fetch``.

    The server must allow the page's origin (CORS). It is asked without cookies, follows no redirect, and
    learns nothing of the page's address. The key is kept in this object only: it is in no message, no
    event and no commit, and the object cannot be pickled.

    Args:
        url: where the API begins, e.g. ``"https://api.openai.com/v1"``; ``/chat/completions`` is added.
        model: its name there.
        key: sent as ``Authorization: Bearer``; None for a server that wants none.
        headers: sent beside it.
        tools: whether the model takes actions as tool calls; otherwise as fenced blocks.
        images: whether it can look at pictures.
        stream: whether its answer comes in pieces as it is written.
        seconds: what one request may take.
        transport: what sends; the page's ``fetch`` by default.

    Raises:
        ModelNotConfigured: the URL is none of http or https, or there is no model's name.

    Example::

        agent = Agent(model=FetchModel("https://api.openai.com/v1", "gpt-6.1-terra", key=key))
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        tools: bool = True,
        images: bool = False,
        stream: bool = True,
        seconds: float = 120.0,
        transport: Transport = _fetch,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ModelNotConfigured(
                f"{url!r} is no address of a server; give one such as 'https://api.openai.com/v1'."
            )
        if not model.strip():
            raise ModelNotConfigured("The model's name is empty; give the one that the server knows.")
        self.name = model
        self.provider = parts.hostname
        self.profile = Profile(tools=tools, images=images)
        self._url = url.rstrip("/") + "/chat/completions"
        self._key = key
        self._headers = dict(headers or {})
        self._stream = stream
        self._seconds = seconds
        self._transport = transport

    def __repr__(self) -> str:
        return f"FetchModel({self.name!r} at {self.provider})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A FetchModel holds a key and is not pickled; make it anew where it is needed.")

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Refuse: nothing can wait for ``fetch`` without giving the event loop its turn."""
        raise ModelError(
            f"{self!r} is asked without waiting: make the task async (async def) and await it",
            retryable=False,
        )

    async def aask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Answer a request; cancelling it gives the request up."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._asked(request, on_text)
        except TimeoutError as error:
            raise self._error(f"no answer within {self._seconds:g} s", retryable=True) from error
        except OSError as error:
            raise self._error(f"{error}", retryable=True) from error
        except ModelError as error:
            raise self._error(
                str(error), retryable=error.retryable, retry_after=error.retry_after
            ) from error.__cause__

    async def _asked(self, request: Request, on_text: OnText | None) -> Reply:
        streams = self._stream and on_text is not None
        body = payload(self.name, request, tools=self.profile.tools, stream=streams)
        answer = Answer(on_text)
        async with self._transport(self._sending(body)) as response:
            if response.status != 200:
                told = await _whole(response)
                raise failure(response.status, response.headers, told.decode("utf-8", "replace"))
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for chunk in _bounded(response):
                    answer.feed(chunk)
            else:  # a server may not stream, even if it was asked to
                answer.take((await _whole(response)).decode("utf-8", "replace"))
        return answer.reply(request)

    def _sending(self, body: object) -> Sending:
        headers = {"content-type": "application/json", **self._headers}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        # Text printed by guest code may hold lone surrogates, which have no UTF-8: JSON spells them out.
        return Sending(url=self._url, headers=headers, body=json.dumps(body).encode("ascii"))

    def _error(self, text: str, *, retryable: bool, retry_after: float | None = None) -> ModelError:
        """Make an error's message, which is committed with the events: without the key."""
        for secret in (self._key, *self._headers.values()):
            if secret:
                text = text.replace(secret, "***")
        return ModelError(f"{self.provider}: {text}", retryable=retryable, retry_after=retry_after)


async def _bounded(response: Response) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in response.chunks():
        size += len(chunk)
        if size > _MOST_BYTES:
            raise ModelError(f"the answer is longer than {_MOST_BYTES:,} bytes", retryable=False)
        yield chunk


async def _whole(response: Response) -> bytes:
    return b"".join([chunk async for chunk in _bounded(response)])
