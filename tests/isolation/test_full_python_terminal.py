"""The terminal of full Python: its shell, its Python and the commands of the host see the same files."""

from __future__ import annotations

from typing import Any

import pytest

from agex import Agent, OutputEvent
from agex.isolation.kernel import missing
from agex.testing import ScriptedModel, python_action, terminal_action

needs_kernel = pytest.mark.skipif(bool(missing()), reason=f"the kernel level does not hold: {missing()}")


@pytest.fixture(params=["process", pytest.param("kernel", marks=needs_kernel)])
def level(request: pytest.FixtureRequest) -> str:
    return request.param


def shown(level: Any, script: str) -> str:
    """Run a script as the first turn of a task; return what it showed."""
    model = ScriptedModel([[terminal_action(script)], [python_action("task_success(None)")]])
    agent = Agent(model=model, isolation=level, python="full")

    @agent.terminal
    def bundle(ctx: Any) -> None:
        """Show a file, and write another."""
        ctx.stdout.write(f"bundled {ctx.fs.read(ctx.args[0]).decode().strip()}\n")
        ctx.fs.write("made", b"by the host\n")

    @agent.task
    def work() -> None:
        """Work."""

    return "".join(event.text for event in work.run().events if isinstance(event, OutputEvent))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param(
            "python -c \"open('f', 'w').write('x')\"; cat f", "x", id="the shell reads what Python wrote"
        ),
        pytest.param(
            "echo 'X = 5' > m.py; python -c 'import m; print(m.X)'",
            "5",
            id="Python imports what the shell wrote",
        ),
        pytest.param(
            "echo y > a; bundle a", "bundled y", id="a command of the host reads what the shell wrote"
        ),
        pytest.param(
            "mkdir d; echo z > d/a; cd d; bundle a", "bundled z", id="it works in the folder of the shell"
        ),
        pytest.param(
            "echo y > a; bundle a; python -c \"print(open('made').read())\"",
            "by the host",
            id="Python reads what it wrote",
        ),
    ],
)
def test_all_of_the_terminal_see_the_same_files(level, script, said):
    assert said in shown(level, script)
