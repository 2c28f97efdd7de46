"""``agex runs``, ``resume``, ``replay`` and ``why``: the runs of a state."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from agex import Run, TaskClarify, TaskSuspended, Versioned, runs
from agex.cli.history import opened
from agex.cli.progress import Progress
from agex.cli.run import as_json, find_task, shown
from agex.display import plain
from agex.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["list_runs", "print_replay", "print_runs", "print_why", "replay_run", "resume_run"]


def list_runs(state: Versioned) -> list[dict[str, Any]]:
    """Describe the runs of a state, oldest first."""
    return [
        {
            "run": one.run_id,
            "task": one.task,
            "status": one.status,
            "turn": one.turn,
            "started": one.started.isoformat(timespec="seconds"),
            "call": None if one.call is None else {"id": one.call.id, "text": str(one.call)},
            "question": one.question,
            "message": one.message,
        }
        for one in runs(state)
    ]


def print_runs(entries: list[dict[str, Any]], console: Console) -> None:
    """Print runs, a line each."""
    for entry in entries:
        waits = entry["question"] or entry["message"] or (entry["call"] or {}).get("text", "")
        line = (
            f"{entry['run']}  {entry['status']:9}  {entry['task']}  turn {entry['turn']}  {entry['started']}"
        )
        console.print(Text(plain(f"{line}  {waits}".rstrip())), soft_wrap=True, highlight=False)


def resume_run(
    directory: Path,
    run_id: str,
    address: str,
    *,
    branch: str,
    model: str | None,
    answer: str | None,
    approve: bool,
    reject: str | None,
    quiet: bool,
) -> dict[str, Any]:
    """Go on with a run, printing its events unless *quiet*.

    Raises:
        DefinitionError: the address is of no task, or several answers are given.
        TaskError, TaskSuspended: the task ended without a value.
    """
    if sum((answer is not None, approve, reject is not None)) > 1:
        raise DefinitionError("give one of --answer, --approve and --reject")
    task = find_task(address)
    if model is not None:
        task.agent.model = model
    console = Console(highlight=False, soft_wrap=True)
    with ExitStack() as stack:
        state = stack.enter_context(opened(directory, branch))
        task = task.using(state=state)
        if not quiet:
            progress = stack.enter_context(Progress(console))
            task = task.using(on_event=progress.event, on_token=progress.token)
        run = _whole(task.resume(run_id=run_id))
        decide = _decision(run, answer=answer, approve=approve, reject=reject)
        if decide is not None:
            decide()
        value = run.result()
    if not quiet:
        console.print(Text(shown(value)))
    return {"value": as_json(value), "turns": run.turns, "run_id": run.run_id, "commit": run.commit}


def replay_run(
    directory: Path, run_id: str, address: str, *, branch: str, model: str | None
) -> dict[str, Any]:
    """Run a run again and describe the comparison.

    Raises:
        DefinitionError: the address is of no task, or of another one.
        StateError: the state does not have the run.
    """
    from agex.agent.task.replays import Replaying

    task = find_task(address)
    with opened(directory, branch) as state:
        replay = Replaying(task, state, run_id, model).run()
    found = replay.first_difference
    return {"run": run_id, "same": replay.same, "first_difference": None if found is None else asdict(found)}


def print_replay(entry: dict[str, Any], console: Console) -> None:
    """Print whether a replay was the same, or the first difference."""
    found = entry["first_difference"]
    if found is None:
        console.print("the same", highlight=False)
        return
    where = f"turn {found['turn']}" + (f", line {found['line']}" if found["line"] else "")
    text = f"differs at {where}, {found['what']}\nexpected: {found['expected']}\ngot:      {found['got']}"
    console.print(Text(plain(text)), soft_wrap=True, highlight=False)


def print_why(entry: dict[str, Any], console: Console) -> None:
    """Print the trace from the inputs of a run to its value."""
    lines = [f"{entry['task']}, run {entry['run']}: {entry['status']}"]
    lines += [f"input {name} = {value}" for name, value in entry["inputs"].items()]
    for turn in entry["turns"]:
        lines += ["", f"turn {turn['turn']}"]
        for part in turn["code"]:
            first, *rest = part["text"].splitlines()
            lines += [f"  {part['line']:>4}  {first}", *(f"        {each}" for each in rest)]
        lines += [f"  call  {call['text']} -> {call['outcome']}" for call in turn["calls"]]
        lines += [f"  changed: {', '.join(turn['changed'])}"] if turn["changed"] else []
    lines += ["", f"value = {entry['value']}"]
    if entry["left_out"]:
        lines.append(
            f"without turns {', '.join(map(str, entry['left_out']))}: the value does not depend on them"
        )
    console.print(Text(plain("\n".join(lines))), soft_wrap=True, highlight=False)


def _whole(run: Any) -> Run[Any]:
    """Return the run; that of an async task is awaited."""
    import asyncio
    import inspect

    if not inspect.iscoroutine(run):
        return run  # type: ignore[no-any-return]
    return asyncio.run(run)


def _decision(
    run: Run[Any], *, answer: str | None, approve: bool, reject: str | None
) -> Callable[[], object] | None:
    """Return what answers a run that waits; None where nothing is said."""
    if answer is not None:
        _require(run, TaskClarify, "asks nothing")
        return lambda: run.answer(answer)
    if approve:
        _require(run, TaskSuspended, "waits for no approval")
        return run.approve
    if reject is not None:
        _require(run, TaskSuspended, "waits for no approval")
        return lambda: run.reject(reject)
    return None


def _require(run: Run[Any], waits: type[BaseException], otherwise: str) -> None:
    if not isinstance(run.error, waits):
        raise DefinitionError(f"run {run.run_id} {otherwise}")
