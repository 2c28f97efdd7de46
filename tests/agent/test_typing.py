"""What type-checkers see of tasks and registrations."""

from __future__ import annotations

import pytest

SOURCE = """
from typing import assert_type
from agex.agent import Agent, Run

agent = Agent()

@agent.task
def plain(x: int, y: str = "") -> list[int]: ...  # type: ignore[empty-body]

@agent.task("primer", reuse=True)
def primed(x: int) -> str: ...  # type: ignore[empty-body]

@agent.task
async def later(x: int) -> str: ...  # type: ignore[empty-body]

@agent.fn(visibility="low")
def registered(x: int) -> int:
    return x

assert_type(plain(1), list[int])
assert_type(plain.run(1, y="x"), Run[list[int]])
assert_type(plain.using(budget=None)(1), list[int])
assert_type(primed(1), str)
assert_type(registered(2), int)

async def main() -> None:
    assert_type(await later(1), str)
    assert_type(await later.arun(1), Run[str])

plain("no")  # type: ignore[arg-type]
plain(1, z=2)  # type: ignore[call-arg]
"""


@pytest.mark.slow
def test_a_task_has_the_functions_own_parameters_and_return_type(tmp_path):
    mypy = pytest.importorskip("mypy.api", reason="the type-checker comes with the extra `check`")
    file = tmp_path / "user.py"
    file.write_text(SOURCE)
    shown, _, status = mypy.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(file)])
    assert (shown.strip().splitlines()[-1], status) == ("Success: no issues found in 1 source file", 0)
