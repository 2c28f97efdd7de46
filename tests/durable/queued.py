"""Tasks for the tests of workers: what they do to the world is a line in a file for each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agex import Agent
from agex.testing import ScriptedModel

PAY = (
    "```python\nfirst = charge(number, 'a')\nsecond = charge(number, 'b')\ntask_success([first, second])\n```"
)


class World:
    """Calls that were made, and a function called in each."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.during: Callable[[str], object] = lambda name: None


def paying(
    world: World,
    answers: Any = lambda messages: PAY,
    *,
    leave: Callable[[], object] | None = None,
    checks: Iterable[Any] = (),
    **settings: Any,
) -> Any:
    """Return a task that charges twice; its code can call ``leave``."""
    agent = Agent(model=ScriptedModel(answers), name="payer", fs=None, **settings)

    @agent.fn(external=True)
    def charge(number: int, name: str) -> str:
        """Charge."""
        world.during(name)
        world.made.append(f"{number} {name}")
        return f"{name} is paid"

    if leave is not None:
        agent.fn(leave, name="leave")

    @agent.task(checks=checks)
    def pay(number: int) -> list[str]:
        """Pay twice."""

    return pay
