"""``agex freeze``: the code that solved a task, as a module with tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agex.cli.history import opened
from agex.cli.run import find_task

__all__ = ["freeze_task"]


def freeze_task(address: str, directory: Path, out: Path, *, branch: str, overwrite: bool) -> dict[str, Any]:
    """Write the solution that a state has of a task.

    Raises:
        DefinitionError: the address is of no task, or there is nothing to write.
    """
    task = find_task(address)
    with opened(directory, branch) as state:
        module: Path = task.using(state=state).freeze(out, overwrite=overwrite)
    return {"module": str(module), "tests": str(module.with_name(f"test_{module.name}"))}
