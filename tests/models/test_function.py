"""Functions as models."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agex import Agent, Budget, BudgetExceeded, LLMFail
from agex.models.base import Message, ModelError, Request
from agex.models.function import FunctionModel
from agex.tinyagent import TinyCodeAgent

HELLO = Request(messages=(Message(role="system", content="rules"), Message(role="user", content="task")))
SUCCESS = "```python\ntask_success(len(text))\n```"


def double(model: Any, **settings: Any) -> Any:
    agent = Agent(model=model, **settings)

    @agent.task
    def measure(text: str) -> int: ...

    return measure


def test_a_function_of_the_messages_is_a_model() -> None:
    seen: list[Message] = []

    def answer(messages: list[Message]) -> str:
        seen.extend(messages)
        return SUCCESS

    assert double(answer)("four") == 4
    assert [message.role for message in seen] == ["system", "user"]


async def test_an_async_function_is_awaited_in_the_callers_loop() -> None:
    threads: set[int] = set()

    async def answer(messages: list[Message]) -> str:
        threads.add(threading.get_ident())
        await asyncio.sleep(0)
        return SUCCESS

    assert (await FunctionModel(answer).aask(HELLO)).text == SUCCESS
    assert threads == {threading.get_ident()}


def test_an_async_function_serves_sync_callers_too() -> None:
    async def answer(messages: list[Message]) -> str:
        return SUCCESS

    assert double(answer)("four") == 4


def test_a_tiny_agent_takes_one_as_well() -> None:
    agent = TinyCodeAgent(model=lambda messages: "```python\nfinal_answer(6 * 7)\n```")
    assert agent.run_sync("six times seven") == "42"


def test_its_tokens_are_estimated_and_its_price_is_unknown() -> None:
    usage = FunctionModel(lambda messages: "12345678").ask(HELLO).usage
    assert (usage.requests, usage.output_tokens, usage.cost) == (1, 2, None)
    with pytest.raises(BudgetExceeded):
        double(lambda messages: SUCCESS, budget=Budget(usd=1.0))("four")


def test_a_failed_request_of_its_own_is_repeated() -> None:
    answers: list[Any] = [ModelError("busy", retryable=True), SUCCESS]

    def answer(messages: list[Message]) -> str:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return str(found)

    assert double(answer)("four") == 4


def test_an_answer_that_is_no_text_is_a_failed_request() -> None:
    with pytest.raises(LLMFail, match="NoneType"):
        double(lambda messages: None)("four")


def test_an_error_of_the_function_is_the_callers() -> None:
    def answer(messages: list[Message]) -> str:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        double(answer)("four")


def test_answers_that_are_used_up_are_an_error_at_once() -> None:
    answers: Any = iter([])
    with pytest.raises(RuntimeError, match="StopIteration"):
        double(lambda messages: next(answers))("four")


async def test_answers_that_are_used_up_are_an_error_at_once_in_an_async_task_too() -> None:
    answers: Any = iter([])
    agent = Agent(model=lambda messages: next(answers))

    @agent.task
    async def measure(text: str) -> int: ...

    with pytest.raises(RuntimeError, match="StopIteration"):
        await measure("four")
