"""No text of a host object's delays a call or ends it: of an input, of an error, of a default, of a state."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agex import Agent, Live
from agex.agent.call.host_errors import message_of
from agex.testing import ScriptedModel

ENDED = "```python\ntask_success(None)\n```"
let_go = threading.Event()
waited_for: list[str] = []
"""Classes whose text was waited for to its end."""


def late_text(given: object) -> str:
    if not let_go.wait(60):
        waited_for.append(type(given).__name__)
    return "late"


@pytest.fixture(autouse=True)
def _ending() -> Iterator[None]:
    """Let slow texts end with the test."""
    let_go.clear()
    yield
    let_go.set()


@contextmanager
def nobody_waits() -> Iterator[None]:
    """Fail if the block waits for a slow text. Afterwards each text is there at once: pytest may show it."""
    let_go.clear()
    waited_for.clear()
    try:
        yield
    finally:
        let_go.set()
    assert waited_for == []


class Slow:
    def __repr__(self) -> str:
        return late_text(self)


class Failing:
    def __repr__(self) -> str:
        raise ValueError("no")


class Robot:
    """Drives."""

    battery = 7

    def __repr__(self) -> str:
        return f"Robot at {self.battery} %"


class SlowError(Exception):
    def __str__(self) -> str:
        return late_text(self)


class FailingError(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


def looked_at(given: object, *, style: Any = "full") -> str:
    model = ScriptedModel([ENDED], style=style)
    agent = Agent(model=model)
    agent.cls(Robot)

    @agent.task
    def look(given: object) -> None:
        """Look at it."""

    with nobody_waits():
        look(given)
    return model.requests[0].messages[-1].content


SHOWN = [
    (Robot(), "Robot at 7 %"),
    ([Robot()], "[Robot at 7 %]"),
    (Slow(), "<Slow, repr too slow>"),
    (Failing(), "<Failing, repr failed: ValueError>"),
    ([Slow() for _ in range(1_000)], "[<Slow, repr too slow>, <Slow, repr too slow>, "),
]


@pytest.mark.parametrize("style", ["full", "completion"])
@pytest.mark.parametrize(("given", "shown"), SHOWN, ids=[shown for _, shown in SHOWN])
def test_an_input_is_shown_by_its_own_repr_if_that_comes_in_time(
    given: object, shown: str, style: str
) -> None:
    assert shown in looked_at(given, style=style)


def test_in_a_thread_and_in_an_event_loop_there_is_the_same_limit() -> None:
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(looked_at(Slow())))
    thread.start()
    thread.join()

    async def ask() -> str:
        model = ScriptedModel([ENDED])
        agent = Agent(model=model)

        @agent.task
        async def look(given: object) -> None:
            """Look at it."""

        await look(Slow())
        return model.requests[0].messages[-1].content

    with nobody_waits():
        told.append(asyncio.run(ask()))
    assert ["<Slow, repr too slow>" in each for each in told] == [True, True]


def test_many_inputs_and_variables_share_one_limit() -> None:
    classes = [type(f"Slow{number}", (Slow,), {}) for number in range(30)]
    assert "Slow0, repr too slow" in looked_at({f"key{n}": kind() for n, kind in enumerate(classes)})


def seen_after(code: str, given: object, seconds: float = 0.3) -> str:
    model = ScriptedModel([f"```python\n{code}\n```", ENDED])
    agent = Agent(model=model, timeout_seconds=seconds)

    @agent.fn
    def fail() -> None:
        raise given if isinstance(given, Exception) else LookupError(given)

    @agent.task
    def look(given: object) -> None:
        """Look at it."""

    with nobody_waits():
        look(given)
    return model.requests[-1].messages[-1].content


@pytest.mark.parametrize("code", ["given", "repr(given)", "print(given)", "[given]", "f'{given}'"])
def test_the_agents_own_look_at_an_object_is_under_the_limit_of_its_action(code: str) -> None:
    assert "the code ran longer than 0.3 s" in seen_after(code, Slow())
    assert "ValueError: no" in seen_after(code, Failing(), 30)


@pytest.mark.parametrize(
    "error", [SlowError(), FailingError(), Slow(), Failing()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("code", ["fail()", "try:\n    fail()\nfinally:\n    1 / 0"])
def test_an_error_of_the_host_that_does_not_say_what_it_is_neither_delays_nor_ends_the_call(
    error: object, code: str
) -> None:
    assert "Error: " in seen_after(code, error)


MESSAGES: list[tuple[BaseException, str]] = [
    (ValueError("a"), "a"),
    (KeyError("a"), "'a'"),
    (FailingError("a"), "<FailingError, text failed: ValueError>"),
    (SlowError("a"), "<SlowError, text too slow>"),
]


@pytest.mark.parametrize(("error", "text"), MESSAGES, ids=[text for _, text in MESSAGES])
def test_an_error_says_what_it_is_in_time_or_that_it_does_not(error: BaseException, text: str) -> None:
    assert message_of(error) == text


LOOPING = """
class Evil(Exception):
    def __str__(self):
        while True: pass
"""


@pytest.mark.parametrize(
    "code", ["fail(Evil())", "try:\n    raise Evil\nexcept Evil:\n    fail(LookupError('a'))"]
)
def test_no_error_of_the_agents_is_asked_for_its_text_outside_of_its_run(
    code: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel([f"```python\n{LOOPING}\n{code}\n```", ENDED])
    agent = Agent(model=model, timeout_seconds=1.0)

    @agent.fn
    def fail(error: Exception) -> None:
        raise error

    @agent.task
    def look() -> None:
        """Look at it."""

    with caplog.at_level(logging.WARNING, logger="agex"):
        look()
    assert "agex text" not in {thread.name for thread in threading.enumerate()}
    [told] = [record.getMessage() for record in caplog.records if record.name == "agex"]
    assert "raised Evil: <Evil>" in told or "raised LookupError: a\nTraceback" in told


DEFAULTS: list[Callable[[], object]] = [Slow, Failing]


@pytest.mark.parametrize("make", DEFAULTS, ids=lambda kind: kind.__name__)
def test_a_default_neither_delays_nor_ends_a_call_in_a_worker(make: Callable[[], object]) -> None:
    model = ScriptedModel(["```python\ntask_success(tool())\n```"])
    agent = Agent(model=model, isolation="process")

    @agent.fn
    def tool(given: object = make(), *, other: object = make()) -> int:
        return 1

    @agent.task
    def look() -> int:
        """Look at it."""

    with nobody_waits():
        assert look() == 1


def test_the_repr_of_a_state_and_the_pages_of_an_agent_ask_no_value() -> None:
    state = Live()
    state["slow"], state["failing"] = Slow(), Failing()
    agent = Agent(state=state)
    with nobody_waits():
        assert repr(agent.state) == "Live(failing, slow)"
        assert "Live(failing, slow)" in agent._repr_html_()
