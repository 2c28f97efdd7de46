"""The log of ``logging.getLogger("agex")``: what happened to tasks, and nothing of what they were about."""

from __future__ import annotations

import logging
import re

import pytest

from agex import Agent, TaskFail, TaskTimeout
from agex.models import ModelError
from agex.testing import ScriptedModel, python_action

SECRET = "zq-4711"
MASKS = {r"[0-9a-f]{32}": "ID", r"[\d.]+(?= s\b)": "N", r"[\d+]+(?= tokens)": "N"}


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return levels and messages, with run ids, seconds and tokens left out."""
    said = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "agex"]
    for pattern, mask in MASKS.items():
        said = [(level, re.sub(pattern, mask, text)) for level, text in said]
    return said


def reading(replies: list[object], **settings: object):
    agent = Agent(model=ScriptedModel(replies), name="reader", **settings)

    @agent.task
    def read(text: str) -> int:
        """Read."""

    return read


def test_at_info_a_task_begins_and_ends(caplog):
    read = reading([[python_action("print(text)")], [python_action("task_success(len(text))")]])
    with caplog.at_level(logging.INFO, logger="agex"):
        read(SECRET)
    assert lines(caplog) == [
        ("INFO", "reader.read (run ID) began"),
        ("INFO", "reader.read (run ID) ended with a value after N s: 2 turns, 2 requests, N tokens"),
    ]


def test_a_task_that_fails_is_no_warning_for_its_caller_has_the_error(caplog):
    read = reading([[python_action("task_fail(text)")]])
    with caplog.at_level(logging.INFO, logger="agex"), pytest.raises(TaskFail):
        read(SECRET)
    assert lines(caplog)[-1] == (
        "INFO",
        "reader.read (run ID) ended with TaskFail after N s: 1 turns, 1 requests, N tokens",
    )


def test_at_debug_each_turn_is_told_and_no_level_has_what_was_asked_or_computed(caplog):
    code = f"print(text)\nx = '{SECRET}'\nraise ValueError(text)"
    read = reading([[python_action(code)], [python_action("task_success(len(text))")]])
    with caplog.at_level(logging.DEBUG, logger="agex"):
        read(SECRET)
    told = lines(caplog)
    assert [level for level, _ in told] == ["INFO", "DEBUG", "DEBUG", "DEBUG", "INFO"]
    assert told[1][1].endswith("turn 1): testing:scripted answered after N s with N tokens: python_action")
    assert "turn 1): an action raised after N s" in told[2][1]
    assert SECRET not in caplog.text


def test_a_request_that_is_repeated_is_a_warning(caplog):
    failure = ModelError("429 too many requests\nwith a page", retryable=True, retry_after=0.0)
    read = reading([failure, [python_action("task_success(1)")]])
    with caplog.at_level(logging.WARNING, logger="agex"):
        read(SECRET)
    assert lines(caplog) == [
        ("WARNING", "reader.read (run ID, turn 1): ModelError, it goes on: 429 too many requests")
    ]


def test_the_end_of_the_turns_is_a_warning_without_what_the_code_computed(caplog):
    read = reading([[python_action("raise ValueError(text)")]], max_iterations=1)
    with caplog.at_level(logging.WARNING, logger="agex"), pytest.raises(TaskTimeout) as caught:
        read(SECRET)
    assert SECRET in str(caught.value) + str(caught.value.run)
    assert lines(caplog) == [("WARNING", "reader.read (run ID, turn 1): TaskTimeout, it ends")]


def test_the_next_model_of_a_list_is_a_warning(caplog):
    cheap = ScriptedModel([[python_action("1 / 0")]])
    dear = ScriptedModel([[python_action("task_success(1)")]])
    agent = Agent([cheap, dear], name="reader", escalate_after=1)

    @agent.task
    def read(text: str) -> int:
        """Read."""

    with caplog.at_level(logging.WARNING, logger="agex"):
        read(SECRET)
    [(level, text)] = lines(caplog)
    assert level == "WARNING"
    assert "The task goes on with" in text


def test_a_name_cannot_begin_a_line_of_its_own(caplog):
    agent = Agent(
        model=ScriptedModel([[python_action("task_success(1)")]]), name="a\nERROR:root:forged\x1b[2J"
    )

    @agent.task
    def read() -> int:
        """Read."""

    with caplog.at_level(logging.INFO, logger="agex"):
        read()
    assert not any("\n" in text or "\x1b" in text for _, text in lines(caplog))


def test_a_program_that_configures_no_log_gets_none():
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("agex").handlers)
