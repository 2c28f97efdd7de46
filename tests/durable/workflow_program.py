"""A program of DBOS workflows for the tests: it is killed in the middle, and begun again.

python workflow_program.py DATABASE_URL WORLD KILL_AT ARGUMENT
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from agex import Agent
from agex.durable.dbos import workflow
from agex.testing import ScriptedModel

PAY = """```python
def safe(name):
    try:
        return charge(number, name)
    except RuntimeError as doubt:
        return f"{name}: {type(doubt).__name__}"

paid = [safe("a"), safe("b")]
```"""
END = '```python\npaid.append(safe("c"))\ntask_success(paid)\n```'


def paying(world: Path, kill_at: str) -> Any:
    """Return a task that charges three times; its process is killed at a point."""

    reached = threading.Event()

    def note(line: str) -> None:
        with world.open("a") as file:
            file.write(f"{line}\n")
        if line == kill_at:
            reached.set()
            threading.Event().wait(60)

    def die() -> None:
        reached.wait()
        os.kill(os.getpid(), signal.SIGKILL)  # which a function that guest code calls may not do itself

    threading.Thread(target=die, daemon=True).start()

    def answer(messages: Any) -> str:
        is_first = all(message.role != "assistant" for message in messages)
        note("asked first" if is_first else "asked again")
        return PAY if is_first else END

    agent = Agent(model=ScriptedModel(answer), name="payer", fs=None)

    @agent.fn(external=True, host_fs_access=True)
    def charge(number: int, name: str) -> str:
        """Charge."""
        note(f"before {name}")
        note(f"made {name}")
        return f"{name} is paid"

    @agent.task
    def pay(number: int) -> list[str]:
        """Pay three times."""

    return pay


def main() -> None:
    """Begin the workflow, or go on with it; print its value."""
    from dbos import DBOS, SetWorkflowID

    url, world, kill_at, number = sys.argv[1:]
    DBOS(config={
        "name": "payer", "system_database_url": url, "executor_id": "one", "application_version": "1",
        "log_level": "ERROR",
    })  # fmt: skip
    pay = workflow(paying(Path(world), kill_at))
    DBOS.launch()
    with SetWorkflowID("order-7"):
        handle = DBOS.start_workflow(pay, int(number))
    print(handle.get_result())
    DBOS.destroy()


if __name__ == "__main__":
    main()
