"""A task with one session per item, for the tests of other processes and of clusters."""

from __future__ import annotations

import os
from dataclasses import dataclass

from agex import Agent
from agex.testing import ScriptedModel

KEEP = "```python\nseen = [n]\ntask_success(Answer(n=n, worker=worker()))\n```"


def reply(_messages: object) -> str:
    return KEEP


def worker() -> int:
    return os.getpid()


@dataclass
class Answer:
    """Whose answer, and which process gave it."""

    n: int
    worker: int


agent = Agent(model=ScriptedModel(reply))
agent.fn(worker)


@agent.task
def remember(n: int) -> Answer:
    """Keep a number."""


@agent.task
async def awaited(n: int) -> Answer:
    """Keep a number."""
