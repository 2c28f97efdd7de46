"""Progress, questions and the end of calls of tasks that are tools, by the SDK's own client."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.types import ElicitRequestParams, ElicitResult, InputRequiredResult

from agex.agent import Agent
from agex.cli import serve_calls
from agex.cli.serve import TaskTool, _server
from agex.cli.serve_calls import KeptCalls, TaskCall
from agex.testing import ScriptedModel, python_action

MODES = ["legacy", "2026-07-28"]
"""The eras of the protocol: a server asks while a call waits, or a client calls again with the answer."""


def scripted(*codes: str) -> Agent:
    return Agent(model=ScriptedModel([[python_action(code)] for code in codes]))


def client(task: Any, mode: str, **settings: Any) -> Client:
    return Client(_server([TaskTool(task)]), mode=mode, **settings)  # type: ignore[arg-type]


def asking(*turns: str) -> Any:
    """Return a task that asks which shelf, and one that counts."""
    agent = scripted(*turns)

    @agent.task
    def look(n: int) -> str:
        """Look."""

    return look


class Person:
    """Answers forms in order."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return self._answers.pop(0)


def said(text: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"answer": text})


ASK = "found = n * 2\ntask_clarify('Which shelf?')"


# -- progress ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_asks_for_progress_is_told_of_each_turn(mode: str) -> None:
    look = asking("print(1)", "print(2)", "task_success('done')")
    told: list[Any] = []

    async def progress(at: float, total: float | None, message: str | None) -> None:
        told.append((at, total, message))

    async with client(look, mode) as asked:
        result = await asked.call_tool("look", {"n": 1}, progress_callback=progress)
    assert result.structured_content == {"result": "done"}
    assert told == [(1, None, "turn 1"), (2, None, "turn 2"), (3, None, "turn 3")]


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_does_not_ask_for_it_is_told_nothing(mode: str) -> None:
    messages: list[Any] = []

    async def heard(message: Any) -> None:
        messages.append(message)

    async with client(asking("print(1)", "task_success('x')"), mode, message_handler=heard) as asked:
        await asked.call_tool("look", {"n": 1})
    assert messages == []


async def test_handlers_of_the_tasks_own_still_get_their_events() -> None:
    mine: list[str] = []
    look = asking("task_success('x')").using(on_event=lambda event: mine.append(event.type))
    async with client(look, "legacy") as asked:
        await asked.call_tool("look", {"n": 1})
    assert mine == ["task_start", "action", "success"]


async def test_so_do_async_ones_of_an_async_task() -> None:
    mine: list[str] = []

    async def note(event: Any) -> None:
        mine.append(event.type)

    agent = scripted("print(1)", "task_success('x')")

    @agent.task
    async def look() -> str: ...

    told: list[float] = []

    async def progress(at: float, total: float | None, message: str | None) -> None:
        told.append(at)

    async with client(look.using(on_event=note), "legacy") as asked:
        await asked.call_tool("look", {}, progress_callback=progress)
    assert mine[-1] == "success"
    assert told == [1, 2]


# -- questions --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_a_question_is_put_to_the_person_and_the_run_goes_on_with_the_answer(mode: str) -> None:
    look = asking(ASK, "task_clarify('Sure?')", "task_success(f'{found} of {n}')")
    person = Person(said("the upper one"), said("yes"))
    told: list[float] = []

    async def progress(at: float, total: float | None, message: str | None) -> None:
        told.append(at)

    async with client(look, mode, elicitation_callback=person) as asked:
        result = await asked.call_tool("look", {"n": 3}, progress_callback=progress)
    assert result.structured_content == {"result": "6 of 3"}
    assert person.asked == ["Which shelf?", "Sure?"]
    assert told == [1, 2, 3]
    requests = look.agent.model.requests
    assert "the upper one" in requests[1].messages[-1].content


@pytest.mark.parametrize("mode", MODES)
async def test_an_async_task_asks_as_well(mode: str) -> None:
    agent = scripted("task_clarify('Which?')", "task_success('x')")

    @agent.task
    async def look() -> str: ...

    async with client(look, mode, elicitation_callback=Person(said("this"))) as asked:
        assert (await asked.call_tool("look", {})).structured_content == {"result": "x"}


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_gets_the_question_as_an_error(mode: str) -> None:
    async with client(asking(ASK), mode) as asked:
        result = await asked.call_tool("look", {"n": 1})
    assert result.is_error
    assert result.content[0].text == "TaskClarify: Which shelf?"  # type: ignore[union-attr]


NO_ANSWER = {
    "declined": ElicitResult(action="decline"),
    "cancelled": ElicitResult(action="cancel"),
    "accepted without content": ElicitResult(action="accept"),
    "another field": ElicitResult(action="accept", content={"other": "x"}),
    "no text": ElicitResult(action="accept", content={"answer": 3}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", NO_ANSWER)
async def test_without_an_answer_the_question_is_the_error(mode: str, kind: str) -> None:
    async with client(asking(ASK), mode, elicitation_callback=Person(NO_ANSWER[kind])) as asked:
        result = await asked.call_tool("look", {"n": 1})
    assert result.is_error
    assert result.content[0].text == "TaskClarify: Which shelf?"  # type: ignore[union-attr]


async def test_a_task_that_asks_without_end_ends_with_its_last_question() -> None:
    look = asking(*["task_clarify('Again?')"] * 12)
    person = Person(*[said("yes")] * 12)
    async with client(look, "legacy", elicitation_callback=person) as asked:
        result = await asked.call_tool("look", {"n": 1})
    assert result.is_error
    assert len(person.asked) == 10


# -- calls that wait for their client ---------------------------------------------------------


async def waiting(asked: Client, n: int = 1) -> InputRequiredResult:
    result = await asked.session.call_tool("look", {"n": n}, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


async def test_a_call_that_waits_goes_on_once_for_the_same_arguments_and_for_who_asked_only() -> None:
    look = asking(ASK, "task_success('x')")
    async with client(look, MODES[1], elicitation_callback=Person()) as asked:
        state = (await waiting(asked)).request_state
        assert state is not None
        answers: Any = {"answer": said("upper")}
        for arguments, given in (({"n": 2}, state), ({"n": 1}, state[:-4]), ({"n": 1}, "made up")):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await asked.session.call_tool(
                    "look", arguments, input_responses=answers, request_state=given, allow_input_required=True
                )
        done = await asked.session.call_tool("look", {"n": 1}, input_responses=answers, request_state=state)
        assert done.structured_content == {"result": "x"}
        with pytest.raises(MCPError, match="waits for this answer any more"):
            await asked.session.call_tool("look", {"n": 1}, input_responses=answers, request_state=state)


async def test_the_call_that_has_waited_longest_gives_way() -> None:
    kept = KeptCalls()
    calls = [TaskCall(asking(), kept) for _ in range(101)]
    names = [kept.keep(call) for call in calls]
    assert kept.take(names[0]) is None
    assert kept.take(names[1]) is calls[1]
    assert kept.take(names[1]) is None


async def test_a_call_that_has_waited_too_long_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptCalls()
    name = kept.keep(TaskCall(asking(), kept))
    monkeypatch.setattr(serve_calls, "KEEP_SECONDS", -1.0)
    assert kept.take(name) is None


# -- the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_gives_a_call_up_ends_its_task(mode: str) -> None:
    loop, begun, over = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def note(event: Any) -> None:
        if event.type == "action":
            loop.call_soon_threadsafe(begun.set)
        if event.type == "cancelled":
            loop.call_soon_threadsafe(over.set)

    look = asking("while True: pass").using(on_event=note)
    async with client(look, mode) as asked, anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(_cancel, begun, scope)
            await asked.call_tool("look", {"n": 1})
        assert scope.cancelled_caught
        with anyio.fail_after(10):
            await over.wait()


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_gives_up_while_a_person_is_asked_leaves_nothing_behind(mode: str) -> None:
    begun = asyncio.Event()

    async def never(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError

    look = asking(ASK, "task_success('x')")
    async with client(look, mode, elicitation_callback=never) as asked, anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(_cancel, begun, scope)
            await asked.call_tool("look", {"n": 1})
        assert scope.cancelled_caught
        assert len((await asked.list_tools()).tools) == 1


async def _cancel(when: asyncio.Event, scope: anyio.CancelScope) -> None:
    await when.wait()
    scope.cancel()
