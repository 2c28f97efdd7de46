"""Calls of a task by clients of ``agex serve-mcp``: their progress, their questions, their end.

The question of ``task_clarify`` goes to the person at the client, where the client can ask one. A client of
the protocol until 2025 is asked while its call waits. A later one gets the question as the result, and
calls again with the answer; meanwhile the run is kept here.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from agex.agent import ActionEvent, Run
from agex.errors import TaskClarify

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext
    from mcp.types import ElicitRequestedSchema, InputRequiredResult

    Request: TypeAlias = ServerRequestContext[Any, Any]

__all__ = ["ANSWER", "KEEP_SECONDS", "KeptCalls", "TaskCall", "answer_in"]

QUESTIONS = 10
"""Of one call that are put to a person; one more ends the call. The SDK's client gives up there, too."""
KEEP_SECONDS = 600.0
"""How long a run waits for a client to call again."""
KEPT = 100
"""Runs that wait at a time; the one that has waited longest gives way."""
ANSWER = "answer"
"""The name of the question, and of the one field of its form."""
_FORM: ElicitRequestedSchema = {
    "type": "object",
    "properties": {ANSWER: {"type": "string", "title": "Answer"}},
    "required": [ANSWER],
}


class KeptCalls:
    """Calls whose clients were asked something, each for one further request."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, TaskCall]] = OrderedDict()

    def keep(self, call: TaskCall) -> str:
        """Keep a call; return what its client names it by."""
        self._forget(KEPT - 1)
        name = secrets.token_urlsafe(16)
        self._kept[name] = (time.monotonic(), call)
        return name

    def take(self, name: str) -> TaskCall | None:
        """Return a call that waits, once."""
        self._forget(KEPT)
        _, call = self._kept.pop(name, (0.0, None))
        return call

    def _forget(self, most: int) -> None:
        now = time.monotonic()
        while self._kept:
            since, _ = next(iter(self._kept.values()))
            if len(self._kept) <= most and now - since <= KEEP_SECONDS:
                return
            self._kept.popitem(last=False)


class TaskCall:
    """One run of a task, over all requests of its client.

    Args:
        task: to be called.
        kept: where the call waits between two requests.
    """

    def __init__(self, task: Any, kept: KeptCalls) -> None:
        self._turns = _Turns()
        self._task = task.using(on_event=_both(self._turns.note, task.call_options.on_event))
        self._kept = kept
        self._asked = 0
        self._question: TaskClarify | None = None

    async def begin(self, request: Request, arguments: dict[str, Any]) -> Run[Any] | InputRequiredResult:
        """Run the task; return the run, or the question that its client has to answer first.

        Raises:
            TaskError: the task ended without a value.
        """
        return await self._on(request, self._task.arun(**arguments))

    async def go_on(self, request: Request, answer: str | None) -> Run[Any] | InputRequiredResult:
        """Go on with the answer to the question; with None, nobody gave any."""
        question = self._question
        assert question is not None
        assert question.run is not None
        if answer is None:
            raise question
        return await self._on(request, question.run.aanswer(answer))

    async def _on(self, request: Request, step: Awaitable[Run[Any]]) -> Run[Any] | InputRequiredResult:
        async with self._turns.reported(request):
            while True:
                try:
                    return await step
                except TaskClarify as question:
                    if question.run is None or self._asked == QUESTIONS or not _can_ask(request):
                        raise
                    self._asked += 1
                    if _is_asked_by_result(request):
                        self._question = question
                        return self._as_result(question)
                    answer = await _asked(request, question)
                    if answer is None:
                        raise
                    step = question.run.aanswer(answer)

    def _as_result(self, question: TaskClarify) -> InputRequiredResult:
        from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

        params = ElicitRequestFormParams(message=question.message, requested_schema=_FORM)
        return InputRequiredResult(
            input_requests={ANSWER: ElicitRequest(params=params)}, request_state=self._kept.keep(self)
        )


# -- questions ---------------------------------------------------------------------------------


def _can_ask(request: Request) -> bool:
    """Return whether the client said that it can put a form before a person."""
    capabilities = request.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return _is_asked_by_result(request) or request.session.can_send_request


def _is_asked_by_result(request: Request) -> bool:
    from mcp.types.version import MODERN_PROTOCOL_VERSIONS

    return request.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _asked(request: Request, question: TaskClarify) -> str | None:
    """Ask the client while its call waits; None if no answer is had."""
    from mcp import MCPError

    try:
        result = await request.session.elicit_form(question.message, _FORM, request.request_id)
    except MCPError:  # it cannot, after all: the call ends as with any client that cannot
        return None
    return answer_in(result)


def answer_in(result: Any) -> str | None:
    """Return what a person answered; None if they declined, or the client sent no text."""
    from mcp.types import ElicitResult

    if not isinstance(result, ElicitResult) or result.action != "accept":
        return None
    answer = (result.content or {}).get(ANSWER)
    return answer if isinstance(answer, str) else None


# -- progress ----------------------------------------------------------------------------------


class _Turns:
    """Counts the turns of a run, and reports them to the request that waits for it."""

    def __init__(self) -> None:
        self._count = 0
        self._tell: Callable[[int], object] | None = None

    def note(self, event: Any) -> None:
        """Count the event, from whichever thread."""
        if isinstance(event, ActionEvent):
            self._count += 1
            tell = self._tell
            if tell is not None:
                tell(self._count)

    @asynccontextmanager
    async def reported(self, request: Request) -> AsyncIterator[None]:
        """Report each turn meanwhile; a client that did not ask for it is told nothing."""
        loop = asyncio.get_running_loop()
        turns: asyncio.Queue[int | None] = asyncio.Queue()

        async def report() -> None:
            while (turn := await turns.get()) is not None:
                await request.session.report_progress(turn, message=f"turn {turn}")

        self._tell = lambda turn: loop.call_soon_threadsafe(turns.put_nowait, turn)
        reporting = loop.create_task(report())
        try:
            yield
            self._tell = None
            loop.call_soon(turns.put_nowait, None)  # behind those that were noted in this step of the loop
            await reporting
        finally:
            self._tell = None
            reporting.cancel()


def _both(first: Callable[[Any], None], second: Any) -> Any:
    """Return a handler of events that calls both; *second* is the task's own, which may be async, or None."""
    if second is None:
        return first

    async def later(event: Any) -> None:
        first(event)
        await second(event)

    def at_once(event: Any) -> None:
        first(event)
        second(event)

    return later if inspect.iscoroutinefunction(second) else at_once
