"""What type-checkers must see of tasks and registrations: `make check` reads this, nothing runs it.

A call that must be refused carries the refusal; strict mypy complains where there is none.
"""

# pyright: reportUnusedCallResult=false

from __future__ import annotations

from typing import assert_type

from agex.agent import Agent, Run

agent = Agent()


@agent.task
def plain(x: int, y: str = "") -> list[int]: ...  # type: ignore[empty-body]


@agent.task("primer", reuse=True, samples=3, choose="first")
def primed(x: int) -> str: ...  # type: ignore[empty-body]


@agent.task
async def later(x: int) -> str: ...  # type: ignore[empty-body]


@agent.fn(visibility="low")
def registered(x: int) -> int:
    """Return what is given."""
    return x


def in_a_program() -> None:
    """Call tasks as functions, with what they take."""
    assert_type(plain(1), list[int])
    assert_type(plain.run(1, y="x"), Run[list[int]])
    assert_type(plain.using(budget=None)(1), list[int])
    assert_type(plain.using(samples=3, choose="agree")(1), list[int])
    assert_type(plain.using(samples=2, choose=lambda values: values[0])(1), list[int])
    assert_type(primed(1), str)
    assert_type(registered(2), int)


async def in_a_coroutine() -> None:
    """Await tasks."""
    assert_type(await later(1), str)
    assert_type(await later.arun(1), Run[str])


def refused() -> None:
    """Call a task with what it does not take."""
    plain("no")  # type: ignore[arg-type]
    plain(1, z=2)  # type: ignore[call-arg]
