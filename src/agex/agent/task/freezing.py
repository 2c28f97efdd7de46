"""Freezing: writing the code that solved a task into a module, with tests beside it, for a person to read."""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agex.agent.base import sandbox_of
from agex.agent.durable.solution_entries import SolutionRecord, Stored
from agex.agent.execution.grants import host_classes
from agex.agent.rendering.output_text import encodable
from agex.agent.task.frozen_code import FrozenModule
from agex.agent.task.frozen_tests import tests_text
from agex.agent.task.solution_terms import differences, terms_of
from agex.errors import DefinitionError
from agex.sandbox import KeptCode
from agex.state import State

if TYPE_CHECKING:
    from agex.agent.task.task import AnyTask

__all__ = ["freeze"]

WIDTH = 100
"""Of a line of the docstring."""


def freeze(
    task: AnyTask[Any, Any],
    stored: Stored,
    state: State | None,
    path: str | os.PathLike[str],
    *,
    overwrite: bool,
) -> Path:
    """Write the solution of a task and its tests; see ``Task.freeze``."""
    target = _target(Path(path), task.__name__)
    tests = target.with_name(f"test_{target.name}")
    there = [str(one) for one in (target, tests) if one.exists()]
    if there and not overwrite:
        raise DefinitionError(
            f"{' and '.join(there)} would be overwritten, which a person may have worked on: give another "
            "path, or overwrite=True."
        )
    if state is not None:
        signature = task.definition.terms.signature
        state.admit(
            host_classes(task.agent.registrations, signature), KeptCode(sandbox_of(task.agent, signature))
        )
    record = _found(task, stored)
    if record.is_built:
        raise DefinitionError(
            f"The code that solved task {task.__name__!r} cannot be frozen: it returns other data, of which "
            "the contract builds the value, such as a dict for a dataclass. Say in the primer that the value "
            "itself is to be returned."
        )
    module = _dotted(target)
    text = FrozenModule(task, record.source).text(_provenance(task, record, state, module))
    tested = tests_text(module, task.definition.terms, stored.calls(record.key))
    target.write_text(encodable(text), encoding="utf-8")
    tests.write_text(encodable(tested), encoding="utf-8")
    _tidy(target, tests)
    return target


def _tidy(*paths: Path) -> None:
    """Lay the files out as the program's own linter wants them; what it objects to is marked on its line."""
    if importlib.util.find_spec("ruff") is None:
        return
    for step in (["check", "--fix"], ["format"], ["check", "--add-noqa"], ["format"]):
        command = [
            sys.executable,
            "-m",
            "ruff",
            *step,
            "--no-cache",
            "--quiet",
            *(path.name for path in paths),
        ]
        # Its objections are no error here: the last steps write them into the files.
        subprocess.run(command, cwd=paths[0].parent, capture_output=True, check=False)  # noqa: S603


def _target(path: Path, name: str) -> Path:
    target = path / f"{name}.py" if path.is_dir() else path
    if target.suffix != ".py" or not target.stem.isidentifier():
        raise DefinitionError(f"{str(target)!r} is no module; give a path such as {name}_solution.py.")
    if not target.parent.is_dir():
        raise DefinitionError(f"there is no folder {str(target.parent)!r} for {target.name}.")
    return target


def _found(task: AnyTask[Any, Any], stored: Stored) -> SolutionRecord:
    terms = terms_of(task.agent, task.definition)
    others = stored.all()
    for one in others:
        if one.terms == terms:
            return one
    if others:
        raise DefinitionError(
            f"The code that solved task {task.__name__!r} in run {others[0].run_id} was written for other "
            f"terms: {differences(others[0].terms, terms)}. Call the task, so that it is solved as it is now."
        )
    raise DefinitionError(
        f"Task {task.__name__!r} has no solution that could be frozen: declare it with reuse=True, and call "
        f"it until the agent ends it by defining {task.__name__}. Where that was done with a state, give it: "
        "task.using(state=...)."
    )


def _dotted(target: Path) -> str:
    """Return the name under which a program imports the module: packages around it count."""
    parts = [target.stem]
    folder = target.resolve().parent
    while (folder / "__init__.py").exists() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _provenance(task: AnyTask[Any, Any], record: SolutionRecord, state: State | None, module: str) -> str:
    about = (task.__doc__ or "").strip().partition("\n")[0] or f"The solution of task {task.__name__}."
    commit = _commit_of(record.run_id, state)
    date = f"{dt.datetime.fromtimestamp(record.created, dt.UTC):%Y-%m-%d}"
    made = (
        f"Written by {record.model} as the solution of task {task.__name__!r} of {task.__module__}, in run "
        f"{record.run_id}{f', commit {commit}' if commit else ''}, on {date}, with agex {record.version}. "
        "Read it before you use it:"
    )
    use = f'    @agent.task(solution="{module}:{task.__name__}")'
    return "\n\n".join([about, textwrap.fill(made, WIDTH, break_long_words=False), use])


def _commit_of(run_id: str, state: State | None) -> str | None:
    """Return the last commit with an event of a run."""
    events = () if state is None else reversed(state.events)
    return next((one.commit_hash for one in events if one.run_id == run_id and one.commit_hash), None)
