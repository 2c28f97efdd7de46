"""``agex run MODULE:TASK``: call a task from the shell."""

from __future__ import annotations

import importlib
import json
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.text import Text

from agex import Disk, Versioned
from agex.agent import AsyncTask, Task
from agex.agent.registration import require_known
from agex.cli.progress import Progress
from agex.contract import preview
from agex.display import plain
from agex.errors import DefinitionError

__all__ = ["as_json", "call_task", "find_module", "find_task", "shown"]

SHOWN_CHARS = 20_000
"""Of a value that is no text."""

_DEEPEST = 100
"""Levels of a value in JSON; a list may hold itself."""


def call_task(
    address: str, arguments: list[str], model: str | None, *, state: Path | None = None, quiet: bool
) -> dict[str, Any]:
    """Call the task at ``MODULE:TASK``, printing its events unless *quiet*.

    With *state*, it runs over the versioned state in that directory, which is made where there is none.

    Raises:
        DefinitionError: the address or an argument cannot be read.
        TaskError: the task ended without a value.
        KeyboardInterrupt: it was cancelled; what was committed stays.
    """
    task = find_task(address)
    if model is not None:
        task.agent.model = model
    inputs = dict(_argument(text) for text in arguments)
    require_known(inputs, tuple(task.definition.terms.signature.parameters), f"--arg: {address}")
    console = Console(highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        if state is not None:
            kept = stack.enter_context(closing(Versioned(Disk(state))))
            task = task.using(state=kept)
        if not quiet:
            progress = stack.enter_context(Progress(console))
            task = task.using(on_event=progress.event, on_token=progress.token)
        run = task.run(**inputs)
    if not quiet:
        console.print(Text(shown(run.value)))
    return {
        "value": as_json(run.value),
        "turns": run.turns,
        "tokens": run.usage.tokens,
        "cost": run.cost,
        "seconds": round(run.duration, 3),
        "run_id": run.run_id,
        "commit": run.commit,
    }


def find_task(address: str) -> Any:
    """Return the task at ``MODULE:TASK``, of a module here or on the path.

    Raises:
        DefinitionError: there is none.
    """
    module, _, name = address.partition(":")
    if not name:
        raise DefinitionError(f"{address!r} names no task; write MODULE:TASK, e.g. reports:summarize")
    task = getattr(find_module(module), name, None)
    if not isinstance(task, Task | AsyncTask):
        raise DefinitionError(f"{address!r} is not a task; decorate the function with @agent.task")
    return task


def find_module(name: str) -> ModuleType:
    """Return a module here or on the path.

    Raises:
        DefinitionError: there is none.
    """
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise DefinitionError(f"there is no module {error.name!r} here or on the path") from error


def shown(value: Any) -> str:
    """Return a value as text; it may be of a class of the agent's own, of which nothing is run here."""
    return plain(value if type(value) is str else preview(value, SHOWN_CHARS))


def as_json(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON data; a part without a JSON form becomes its displayed text.

    The items of an agent's own subclass of a list or a dict are not read.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if depth < _DEEPEST and type(value) in (list, tuple):
        return [as_json(item, depth + 1) for item in value]
    if depth < _DEEPEST and type(value) is dict:
        return {
            key if type(key) is str else shown(key): as_json(item, depth + 1) for key, item in value.items()
        }
    return shown(value)


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise DefinitionError(f"--arg {text!r} is not name=value; write e.g. --arg n=3")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
