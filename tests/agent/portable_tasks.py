"""Tasks that the tests of other processes import there."""

from __future__ import annotations

import os

from agex import Agent, Budget
from agex.models import Reply, Usage
from agex.testing import ScriptedModel

SOLVE = "```python\ntask_success(twice(n) + len(words))\n```"


def reply(_messages: object) -> str:
    return SOLVE


def twice(n: int) -> int:
    return 2 * n


def positive(value: int, _inputs: object) -> bool:
    return value > 0


agent = Agent(model=ScriptedModel(reply), budget=Budget(calls=9))
agent.fn(twice)


@agent.task(checks=[positive], examples=[(((1, ["a"]), {}), 3)])
def double(n: int, words: list[str] = []) -> int:  # noqa: B006 - a task's default is copied
    """Double it.

    >>> double(2)
    4
    """


def unpriced(_messages: object) -> Reply:
    return Reply(text="```python\ntask_success(n)\n```", usage=Usage(requests=1, cost=None))


@Agent(model=ScriptedModel(unpriced)).task
def priceless(n: int) -> int:
    """Answer at an unknown price."""


def die(n: int) -> int:
    """End the process that this is called in, as the system does where memory is short."""
    if n == 2:
        os._exit(1)
    return n


mortal = Agent(model=ScriptedModel(lambda _messages: "```python\ntask_success(die(n))\n```"))
mortal.fn(die)


@mortal.task
def survive(n: int) -> int:
    """Return the number, unless it is 2."""


@mortal.task
async def asurvive(n: int) -> int:
    """Return the number, unless it is 2."""
