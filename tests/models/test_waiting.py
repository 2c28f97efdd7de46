"""A request that is not answered ends: at its limit, at the budget, or with the call."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from agex import Agent, Budget, BudgetExceeded, LLMFail, TaskCancelled
from agex.models.base import Message, Model, ModelError, OnText, Profile, Reply, Request
from agex.testing import ScriptedModel

SHORT = 0.2
ANSWER = "```python\ntask_success(n * 2)\n```"


@pytest.fixture(autouse=True)
def _warm(openai: Any, server: Any) -> None:
    """Ask once: the first request makes the client and its certificates."""
    server.answers = [openai.completion(ANSWER)]
    assert double(chat_model(server))(1) == 2
    server.requests.clear()
    server.asked.clear()


def chat_model(server: Any, settings: ModelSettings | None = None) -> OpenAIChatModel:
    provider = OpenAIProvider(base_url=server.url, api_key="k")
    return OpenAIChatModel("tiny-model", provider=provider, settings=settings)


def double(model: Any, **settings: Any) -> Any:
    agent = Agent(model=model, **{"llm_retries": 0, **settings})

    @agent.task
    def double(n: int) -> int:
        """Double it."""

    return double


def hanging() -> Callable[[list[Message]], str]:
    """Return a function that never answers."""
    return lambda messages: str(threading.Event().wait())


class Deaf(Model):
    """A model of the caller's own that never answers."""

    name = provider = "deaf"

    def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        threading.Event().wait()
        raise AssertionError


WAYS: dict[str, Callable[[Any], Any]] = {
    "called": lambda task: task(1),
    "awaited": lambda task: asyncio.run(task.arun(1)),
    "streamed": lambda task: task(1, on_token=lambda _: None),
    "started": lambda task: task.start(1).result(10),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_provider_that_never_answers_ends_at_the_limit(
    openai: Any, server: Any, way: Callable[[Any], Any]
) -> None:
    server.answers = [openai.hang(server)]
    with pytest.raises(LLMFail, match=r"no answer within 0\.2 s") as caught:
        way(double(chat_model(server), llm_timeout=SHORT))
    assert caught.value.run is not None
    assert server.dropped.wait(10)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("model", [hanging(), Deaf()], ids=["function", "model"])
def test_any_other_model_that_never_answers_does_too(model: Any, way: Callable[[Any], Any]) -> None:
    with pytest.raises(LLMFail, match="llm_timeout"):
        way(double(model, llm_timeout=SHORT))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_budget_ends_a_waiting_request(openai: Any, server: Any, way: Callable[[Any], Any]) -> None:
    server.answers = [openai.hang(server)]
    with pytest.raises(BudgetExceeded, match=r"0\.2 seconds is used up"):
        way(double(chat_model(server), budget=Budget(seconds=SHORT), llm_retries=2))
    assert server.dropped.wait(10)


def test_the_budget_of_a_caller_ends_the_request_of_a_task_it_calls(openai: Any, server: Any) -> None:
    server.answers = [openai.hang(server)]
    inner = double(chat_model(server))
    outer = Agent(
        model=ScriptedModel(["```python\ntask_success(double(1))\n```"]), budget=Budget(seconds=0.5)
    )
    outer.fn(inner)

    @outer.task
    def ask() -> int: ...

    with pytest.raises(BudgetExceeded):
        ask()


def test_cancelling_a_started_task_ends_its_request(openai: Any, server: Any) -> None:
    server.answers = [openai.hang(server)]
    run = double(chat_model(server)).start(1)
    assert server.asked.wait(10)
    assert run.cancel()
    with pytest.raises(TaskCancelled):
        run.result(10)
    assert server.dropped.wait(10)


async def test_cancelling_a_task_ends_the_request_of_a_sync_task_that_its_code_calls(
    openai: Any, server: Any
) -> None:
    server.answers = [openai.hang(server)]
    outer = Agent(model=ScriptedModel(["```python\ntask_success(double(1))\n```"]))
    outer.fn(double(chat_model(server)))

    @outer.task
    async def ask() -> int: ...

    running = asyncio.create_task(ask())
    assert await asyncio.to_thread(server.asked.wait, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(server.dropped.wait, 10)


def test_a_pause_before_a_retry_ends_with_the_budget() -> None:
    busy = ModelError("busy", retryable=True, retry_after=100.0)
    began = time.monotonic()
    with pytest.raises(BudgetExceeded):
        double(ScriptedModel([busy]), llm_retries=2, budget=Budget(seconds=SHORT))(1)
    assert time.monotonic() - began < 50


def test_a_short_limit_does_not_keep_a_request_from_being_repeated() -> None:
    busy = ModelError("busy", retryable=True)
    assert double(ScriptedModel([busy, ANSWER]), llm_retries=1, llm_timeout=0.1)(21) == 42


# A model's own settings.


def test_a_models_own_timeout_is_kept(openai: Any, server: Any) -> None:
    server.answers = [openai.hang(server)]
    with pytest.raises(LLMFail):
        double(chat_model(server, ModelSettings(timeout=SHORT)))(1)


def test_a_models_own_retries_are_kept(openai: Any, server: Any) -> None:
    at_once = {"retry-after-ms": "1"}
    server.answers = [openai.failure(500, headers=at_once)] * 2 + [openai.completion(ANSWER)]
    assert double(chat_model(server, ModelSettings(max_retries=2)))(21) == 42


def test_a_models_other_settings_are_sent(openai: Any, server: Any) -> None:
    server.answers = [openai.completion(ANSWER)]
    double(chat_model(server, ModelSettings(temperature=0.25)))(21)
    assert server.requests[0]["temperature"] == 0.25


# What a provider asks to wait.


def date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "0"}, {"Retry-After": "0.05"}, {"Retry-After": date(-5)}, {"retry-after-ms": "50"}],
    ids=["seconds", "a part of a second", "a date", "milliseconds"],
)
def test_a_wait_that_a_provider_asks_for_is_obeyed(openai: Any, server: Any, headers: dict[str, str]) -> None:
    server.answers = [openai.failure(429, headers=headers), openai.completion(ANSWER)]
    assert double(chat_model(server), llm_retries=1)(21) == 42


@pytest.mark.parametrize(
    "headers",
    [
        lambda: {"Retry-After": "3600"},
        lambda: {"Retry-After": date(3600)},  # from when the test runs, not from when it was found
        lambda: {"retry-after-ms": "3600000"},
    ],
    ids=["seconds", "a date", "milliseconds"],
)
def test_a_longer_wait_than_the_limit_is_an_error_at_once(
    openai: Any, server: Any, headers: Callable[[], dict[str, str]]
) -> None:
    server.answers = [openai.failure(429, headers=headers())]
    with pytest.raises(LLMFail, match=r"asks to wait 3\d+(\.\d+)? s, which is longer than llm_timeout=120 s"):
        double(chat_model(server), llm_retries=3)(21)
    assert len(server.requests) == 1


# Imports.


class Loading(ScriptedModel):
    """Notes when its profile was looked up: a provider's is loaded then."""

    @property
    def profile(self) -> Profile:  # type: ignore[override]
        self.__dict__.setdefault("looked_up", []).append(time.monotonic())
        return Profile(tools=False)

    @profile.setter
    def profile(self, _profile: Profile) -> None:
        """Keep it as it is."""


def test_what_is_loaded_before_a_task_begins_is_not_on_its_budget() -> None:
    model = Loading([ANSWER])
    loaded: list[float] = []

    def began(event: Any) -> None:
        if event.type == "task_start":
            loaded.append(vars(model)["looked_up"][-1])

    run = double(model, budget=Budget(seconds=10)).run(21, on_event=began)
    assert run.duration <= time.monotonic() - loaded[0]


_IMPORTS = """
import sys
from pydantic_ai.models.test import TestModel
from agex.models import Message, Request
from agex.models.provider import PydanticAIModel
model = PydanticAIModel(TestModel())
model.profile
before = set(sys.modules)
model.ask(Request(messages=(Message(role="user", content="x"),)))
print(*sorted(name for name in set(sys.modules) - before if name.startswith("pydantic_ai")))
"""


def test_a_request_imports_nothing_of_the_provider_any_more() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Threads.


def test_many_functions_of_async_tasks_wait_at_once_and_a_hung_one_keeps_nobody() -> None:
    count = 64
    together = threading.Barrier(count)

    def answer(messages: list[Message]) -> str:
        together.wait(30)
        return ANSWER

    agent = Agent(model=answer)

    @agent.task
    async def twice(n: int) -> int:
        """Double it."""

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(twice(n) for n in range(count)))

    assert asyncio.run(all_of_them()) == [2 * n for n in range(count)]


_HUNG = """
import asyncio, threading
from agex import Agent, LLMFail
agent = Agent(model=lambda messages: str(threading.Event().wait()), llm_timeout=0.1, llm_retries=0)
@agent.task
async def wait() -> int: ...
@agent.task
def stay() -> int: ...
async def main():
    try:
        await wait()
    except LLMFail:
        print("given up")
asyncio.run(main())
try:
    stay()
except LLMFail:
    print("given up")
"""


def test_a_process_ends_although_its_models_hang() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HUNG], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split("\n")[:2] == ["given up", "given up"]


def test_an_interrupt_in_a_model_is_the_callers_and_ends_no_other_request() -> None:
    def interrupted(messages: list[Message]) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        double(interrupted)(1)
    assert double(lambda messages: ANSWER)(21) == 42


def test_no_limit_of_zero() -> None:
    with pytest.raises(ValueError, match="llm_timeout=0"):
        Agent(llm_timeout=0)
