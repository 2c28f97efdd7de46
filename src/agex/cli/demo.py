"""``agex demo``: three typed tasks over real objects, solved by a real model, turn by turn.

Nothing here is scripted: the model's own code runs, and a failed task is shown as failed. A value that was
accepted is tried on cases that the model never saw before it is called solved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from agex.agent import Agent, Budget
from agex.cli.progress import Progress
from agex.display import cut, plain
from agex.errors import DefinitionError, TaskError
from agex.models.local import LocalModel
from agex.sandbox import Limits, Policy, Sandbox

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run_demo"]

SALES = {
    "region": ["north", "south", "east", "north", "south", "east", "north", "west"],
    "price": [10.0, 12.5, 9.0, 11.0, 13.0, 8.5, 10.5, 14.0],
    "units": [100, 80, 120, 90, 70, 130, 95, 60],
}

READINGS = ["21.5", "22.0", "n/a", "19.5", "", "23.0", "error 7", "20.0"]

TASK_SECONDS = 150.0
"""Of one task. On two idle cores the small model needs a fifth of it; busy ones need the rest."""
CASE_SECONDS = 2.0
"""Of one call of the function that the model wrote, for a hidden case."""
SHOWN_CHARS = 400
"""Of a value or a message; what is cut is marked."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A case that the model never saw."""

    call: str
    """How it is shown."""
    got: Callable[[], Any]
    expected: Any

    def failure(self) -> str | None:
        """Return how the value breaks the case; None where it holds."""
        try:
            got = self.got()
        except Exception as error:  # noqa: BLE001 - the model's own code runs
            return f"{self.call} raised {type(error).__name__}: {error}"
        return None if got == self.expected else f"{self.call} gave {got!r}, not {self.expected!r}"


def run_demo(model: Any, *, quiet: bool = False, console: Console | None = None) -> dict[str, Any]:
    """Run the three tasks and show the log.

    Args:
        model: what an agent takes; None for the usual choice.
        quiet: show nothing.
        console: where it is shown; standard output by default.

    Raises:
        DefinitionError: pandas is not installed.
        ModelNotConfigured: there is no model.
    """
    console = console or Console(quiet=quiet, highlight=False, soft_wrap=True)
    agent = Agent(name="demo", model=model, max_iterations=6, budget=Budget(seconds=TASK_SECONDS))
    named = _described(agent.resolved_model())
    console.print(Text(f"Model: {named}\n"))
    reports = []
    for title, perform in (
        ("A function, made from text and used at once", _prime_finder),
        ("Statistics over a pandas DataFrame", _statistics),
        ("Dirty data: an error on the way, repaired", _clean_readings),
    ):
        console.print(Rule(title, style="dim"))
        reports.append(_report(title, perform, agent, console, quiet=quiet))
    _show_log(reports, console)
    return {"model": named, "tasks": reports}


def _described(model: Any) -> str:
    """Return a model by its name and its size."""
    if not isinstance(model, LocalModel):
        return f"{model.provider}:{model.name} (its provider does not say how large it is)"
    weights = model.weights()
    size = weights.stat().st_size / 1e6
    return f"{model.provider}:{weights.stem} ({size:,.0f} MB of weights, on this machine's CPU)"


Perform = Callable[[Agent, Callable[[Any], Any]], tuple[Any, str, Sequence[Case]]]


def _report(title: str, perform: Perform, agent: Agent, console: Console, *, quiet: bool) -> dict[str, Any]:
    try:
        with ExitStack() as stack:
            if quiet:
                run, shown, cases = perform(agent, lambda task: task)
            else:
                progress = stack.enter_context(Progress(console))
                run, shown, cases = perform(
                    agent, lambda task: task.using(on_event=progress.event, on_token=progress.token)
                )
    except TaskError as error:
        told = f"{type(error).__name__}: {_short(error.message)}"
        console.print(Text(f"not solved: {told}\n", style="red"))
        return _figures(title, error.run, solved=False, result=type(error).__name__, hidden="not tried")
    failures = [failure for case in cases if (failure := case.failure()) is not None]
    console.print(Text(_short(shown)))
    hidden = f"{len(cases) - len(failures)} of {len(cases)}"
    if failures:
        console.print(Text(f"accepted, but wrong on a hidden case: {_short(failures[0])}\n", style="red"))
    else:
        console.print(Text(f"solved: right on {hidden} hidden cases\n", style="green"))
    return _figures(title, run, solved=not failures, result=shown, hidden=hidden)


def _short(text: str) -> str:
    return plain(cut(text, SHOWN_CHARS))


def _figures(title: str, run: Any, *, solved: bool, result: str, hidden: str) -> dict[str, Any]:
    return {
        "title": title,
        "solved": solved,
        "result": result,
        "hidden_cases": hidden,
        "run_id": run.run_id,
        "turns": run.turns,
        "tokens": run.usage.tokens,
        "seconds": round(run.duration, 2),
    }


SHOWN = {100: 101, 1: 2}
"""Cases of the task's own check, which the model is told of."""
PRIMES = {0: 2, 2: 3, 7: 11, 8: 11, 13: 17, 24: 29, 89: 97, 113: 127}
"""Hidden cases. A function that gives 7 for 7 and 101 for 100 was called solved once."""


def is_prime(number: int) -> bool:
    """Return whether a number is a prime."""
    return number > 1 and all(number % each for each in range(2, math.isqrt(number) + 1))


def _prime_finder(agent: Agent, watched: Callable[[Any], Any]) -> tuple[Any, str, Sequence[Case]]:
    """Let the agent write a function over one of the host, and use it."""
    agent.fn(is_prime)

    def works(finder: Any, inputs: Any) -> str | None:
        for number, prime in SHOWN.items():
            found = finder(number)
            if found != prime:
                return f"called with {number} it must return {prime}, it returned {found!r}"
        return None

    @agent.task(checks=[works])
    def make_function(description: str) -> Callable[[int], int]:
        """Make a Python function that does what the description says, and return the function itself."""
        raise NotImplementedError

    run = watched(make_function).run("find the next prime larger than a given number; use is_prime")
    finder: Any = run.value
    cases = [
        Case(call=f"finder({number})", got=partial(_called, finder, number), expected=prime)
        for number, prime in PRIMES.items()
    ]
    return run, f"finder(100) = {finder(100)}", cases


def _called(finder: Any, number: int) -> Any:
    """Call a function of the model with a clock: its task, which had one, is over."""
    limits = Limits(seconds=CASE_SECONDS)
    result = Sandbox(Policy.default(), limits=limits).session().call(finder, number)
    if result.error is not None:
        raise result.error
    return result.value


def _statistics(agent: Agent, watched: Callable[[Any], Any]) -> tuple[Any, str, Sequence[Case]]:
    """Let the agent compute figures from a data frame that is never copied into the prompt."""
    frame = _sales_frame()
    import pandas as pd

    agent.module(pd, visibility="low")

    @agent.task
    def mean_by_region(df: pd.DataFrame, column: str) -> dict[str, float]:
        """Give the mean of the named column for each region of the data frame."""
        raise NotImplementedError

    run = watched(mean_by_region).run(frame, "price")
    means: Any = frame.groupby("region")["price"].mean()
    return run, f"mean_by_region(df, 'price') = {run.value}", _value_cases(run.value, means.to_dict())


def _value_cases(found: dict[str, float], expected: dict[str, float]) -> list[Case]:
    means = [
        Case(call=f"the mean of {name}", got=partial(_figure, found, name), expected=round(mean, 9))
        for name, mean in expected.items()
    ]
    return [*means, Case(call="the regions", got=lambda: sorted(found), expected=sorted(expected))]


def _figure(found: dict[str, float], name: str) -> float:
    return round(found[name], 9)


def _sales_frame() -> pd.DataFrame:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise DefinitionError('the demo works on a pandas DataFrame: pip install "agex-py[demo]"') from error
    return pd.DataFrame(SALES)


def _clean_readings(agent: Agent, watched: Callable[[Any], Any]) -> tuple[Any, str, Sequence[Case]]:
    """Let the agent sum up messy text: the obvious ``float(text)`` raises, and the agent repairs it."""

    @agent.task
    def average_reading(readings: list[str]) -> float:
        """Give the average of the readings that are numbers; skip the others.

        >>> average_reading(["1.0", "2.0", "bad"])
        1.5
        """
        raise NotImplementedError

    run = watched(average_reading).run(READINGS)
    case = Case(call="the average of the five numbers", got=lambda: round(run.value, 9), expected=21.2)
    return run, f"average_reading({READINGS}) = {run.value}", [case]


def _show_log(reports: list[dict[str, Any]], console: Console) -> None:
    table = Table("run", "task", "solved", "hidden cases", "turns", "tokens", "seconds", title="Log")
    for one in reports:
        solved = "[green]yes[/green]" if one["solved"] else "[red]no[/red]"
        table.add_row(
            one["run_id"][:8],
            one["title"],
            solved,
            one["hidden_cases"],
            str(one["turns"]),
            str(one["tokens"]),
            f"{one['seconds']:.1f}",
        )
    console.print(table)
