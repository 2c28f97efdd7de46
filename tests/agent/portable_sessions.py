"""A task with one session per item, for the tests of other processes and of clusters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from uuid import uuid4

from agex import Agent
from agex.testing import ScriptedModel

KEEP = "```python\nseen = [n]\ntask_success(Answer(n=n, worker=worker(), call=call()))\n```"


def reply(_messages: object) -> str:
    return KEEP


def worker() -> int:
    return os.getpid()


def call() -> str:
    return uuid4().hex


@dataclass
class Answer:
    """Whose answer, which process gave it, and in which call."""

    n: int
    worker: int
    call: str


agent = Agent(model=ScriptedModel(reply))
agent.fn(worker)
agent.fn(call)


@agent.task
def remember(n: int) -> Answer:
    """Keep a number."""


@agent.task
async def awaited(n: int) -> Answer:
    """Keep a number."""
