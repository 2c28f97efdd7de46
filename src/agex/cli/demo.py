"""``agex demo``: three typed tasks over real objects, solved by a real model, turn by turn.

Nothing here is scripted: the model's own code runs, and a failed task is shown as failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from agex.agent import Agent, Event, pprint_events
from agex.errors import DefinitionError, TaskError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run_demo"]

SALES = {
    "region": ["north", "south", "east", "north", "south", "east", "north", "west"],
    "price": [10.0, 12.5, 9.0, 11.0, 13.0, 8.5, 10.5, 14.0],
    "units": [100, 80, 120, 90, 70, 130, 95, 60],
}

READINGS = ["21.5", "22.0", "n/a", "19.5", "", "23.0", "error 7", "20.0"]


def run_demo(model: str | None, *, quiet: bool = False) -> dict[str, Any]:
    """Run the three tasks and show the log.

    Raises:
        DefinitionError: pandas is not installed.
        ModelNotConfigured: there is no model.
    """
    console = Console(quiet=quiet)
    agent = Agent(name="demo", model=model, max_iterations=6)
    chosen = agent.resolved_model()
    console.print(f"Model: [bold]{chosen.provider}:{chosen.name}[/bold]\n")
    on_event = _ignore if quiet else pprint_events
    reports = []
    for title, perform in (
        ("A function, made from text and used at once", _prime_finder),
        ("Statistics over a pandas DataFrame", _statistics),
        ("Dirty data: an error on the way, repaired", _clean_readings),
    ):
        console.print(Rule(title))
        reports.append(_report(title, perform, agent, on_event, console))
    _show_log(reports, console)
    return {"model": f"{chosen.provider}:{chosen.name}", "tasks": reports}


def _ignore(event: Event) -> None:
    """Take an event and do nothing."""


Perform = Callable[[Agent, Any], tuple[Any, str]]


def _report(title: str, perform: Perform, agent: Agent, on_event: Any, console: Console) -> dict[str, Any]:
    try:
        run, shown = perform(agent, on_event)
    except TaskError as error:
        console.print(f"[red]not solved: {type(error).__name__}: {error.message}[/red]\n", highlight=False)
        return _figures(title, error.run, solved=False, result=f"{type(error).__name__}")
    console.print(f"[green]{shown}[/green]\n", highlight=False)
    return _figures(title, run, solved=True, result=shown)


def _figures(title: str, run: Any, *, solved: bool, result: str) -> dict[str, Any]:
    return {
        "title": title,
        "solved": solved,
        "result": result,
        "run_id": run.run_id,
        "turns": run.turns,
        "tokens": run.usage.tokens,
        "seconds": round(run.duration, 2),
    }


def _prime_finder(agent: Agent, on_event: Any) -> tuple[Any, str]:
    """Let the agent write a function, and use it."""
    agent.module(math)

    def works(finder: Any, inputs: Any) -> str | None:
        found = finder(100)
        return None if found == 101 else f"called with 100 it must return 101, it returned {found!r}"

    @agent.task(checks=[works])
    def make_function(description: str) -> Callable[[int], int]:  # type: ignore[empty-body]
        """Make a Python function that does what the description says, and return the function itself."""

    run = make_function.using(on_event=on_event).run("find the next prime larger than a given number")
    finder: Any = run.value
    numbers = sorted([14, 3, 24, 7], key=finder)
    return run, f"finder(100) = {finder(100)}; sorted([14, 3, 24, 7], key=finder) = {numbers}"


def _statistics(agent: Agent, on_event: Any) -> tuple[Any, str]:
    """Let the agent compute figures from a data frame that is never copied into the prompt."""
    frame = _sales_frame()
    import pandas as pd

    agent.module(pd, visibility="low")

    @agent.task
    def mean_by_region(df: pd.DataFrame, column: str) -> dict[str, float]:  # type: ignore[empty-body]
        """Give the mean of the named column for each region of the data frame."""

    run = mean_by_region.using(on_event=on_event).run(frame, "price")
    means: Any = frame.groupby("region")["price"].mean()
    expected = means.to_dict()
    verdict = "right" if run.value == expected else f"WRONG, it is {expected}"
    return run, f"{run.value} ({verdict})"


def _sales_frame() -> pd.DataFrame:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise DefinitionError('the demo works on a pandas DataFrame: pip install "agex-py[demo]"') from error
    return pd.DataFrame(SALES)


def _clean_readings(agent: Agent, on_event: Any) -> tuple[Any, str]:
    """Let the agent sum up messy text: the obvious ``float(text)`` raises, and the agent repairs it."""

    @agent.task
    def average_reading(readings: list[str]) -> float:  # type: ignore[empty-body]
        """Give the average of the readings that are numbers; skip the others.

        >>> average_reading(["1.0", "2.0", "bad"])
        1.5
        """

    run = average_reading.using(on_event=on_event).run(READINGS)
    verdict = "right" if run.value == 21.2 else "WRONG, it is 21.2"
    return run, f"{run.value} ({verdict})"


def _show_log(reports: list[dict[str, Any]], console: Console) -> None:
    table = Table("run", "task", "solved", "turns", "tokens", "seconds", title="Log")
    for one in reports:
        solved = "[green]yes[/green]" if one["solved"] else "[red]no[/red]"
        table.add_row(
            one["run_id"][:8],
            one["title"],
            solved,
            str(one["turns"]),
            str(one["tokens"]),
            f"{one['seconds']:.1f}",
        )
    console.print(table)
