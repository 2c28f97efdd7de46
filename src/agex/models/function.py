"""A function of a conversation as a model, e.g. a client of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from agex._interpreter.threads import awaitable, in_thread
from agex.models import background
from agex.models.base import Message, Model, ModelError, OnText, Profile, Reply, Request, Usage
from agex.models.parser import parse_text

__all__ = ["Answering", "FunctionModel"]

Answering: TypeAlias = Callable[[list[Message]], str] | Callable[[list[Message]], Awaitable[str]]
"""Given the messages, each with ``role`` and ``content``, returns the answer's text, or awaits it."""

_CHARS_A_TOKEN = 4


class FunctionModel(Model):
    """Ask a function of the messages, sync or async. Its answers hold code in fenced blocks.

    What it uses is estimated, four characters a token, and its price is unknown. It may be called
    from several threads at once. A :class:`~agex.models.base.ModelError` that it raises counts as a
    failed request; any other error is the caller's.
    """

    provider = "function"
    runs_on_any_loop = True
    profile = Profile(tools=False)

    def __init__(self, function: Answering) -> None:
        self._function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Call the function; one that is async runs on a private event loop."""
        answer = awaitable(lambda: self._function(list(request.messages)))
        if inspect.isawaitable(answer):
            future = background.submit(_awaited(answer))
            try:
                answer = future.result()
            finally:
                future.cancel()  # without effect on one that is done
        return self._reply(answer, request, on_text)

    async def aask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Like :meth:`ask`; an async function is awaited in this event loop, a sync one in a thread."""
        if inspect.iscoroutinefunction(self._function):
            return self._reply(await self._function(list(request.messages)), request, on_text)
        return await in_thread(lambda: self.ask(request, on_text), "agex request")

    def _reply(self, answer: object, request: Request, on_text: OnText | None) -> Reply:
        if not isinstance(answer, str):
            raise ModelError(
                f"the function {self.name!r} answered with a {type(answer).__name__}; return a text",
                retryable=False,
            )
        if on_text is not None:
            on_text(answer)
        parsed = parse_text(answer, offered=request.actions, most=request.max_actions)
        usage = Usage(
            requests=1,
            input_tokens=len(str(request)) // _CHARS_A_TOKEN,
            output_tokens=len(answer) // _CHARS_A_TOKEN,
            cost=None,
        )
        return Reply(text=answer, actions=parsed.actions, notes=parsed.notes, usage=usage)


async def _awaited(answer: Awaitable[str]) -> str:
    return await answer
