"""The report of an evaluation: figures, a table, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agex.contract import short_repr
from agex.evals.case import NOTHING, Case
from agex.evals.summary import Summary, usage_as_json
from agex.evals.trial import Trial

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["SCHEMA", "Report"]

SCHEMA = "agex.evals/1"
"""Names the form of a report's JSON; the number changes when a reader of it would break."""

_SHOWN_CHARS = 500
"""Of one value in a report's JSON."""

_COLUMNS = ("passed", "pass rate", "errors", "turns", "tokens", "cost", "seconds")
_PRICELESS = 0.000_05
"""US dollars that four places show as nothing."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """All trials of an evaluation, in the order of the cases and of the trials of each.

    ``rich.print(report)`` shows it as a table.
    """

    name: str
    """Of what was tried."""
    model: str | None = None
    """``provider:name`` of a task's model; None for a function."""
    cases: Sequence[Case]
    trials: Sequence[Trial]
    seconds: float = 0.0
    """Wall seconds from the first trial to the last; less than the trials' own where several ran at once."""
    max_concurrency: int = 1
    confidence: float = 0.95
    """Of the intervals."""
    summary: Summary = field(init=False)
    """Of all trials."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "summary", Summary.of(self.trials, confidence=self.confidence))

    def __repr__(self) -> str:
        return f"<agex report {self.name}: {self.summary.passed} of {self.summary.ended} passed>"

    @property
    def pass_rate(self) -> float | None:
        """Of all trials, see `Summary.pass_rate`."""
        return self.summary.pass_rate

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the pass rate. Trials of one case are alike: with few cases it is too narrow for other cases."""
        return self.summary.interval

    def of_case(self, case: Case | str) -> Summary:
        """Return the figures of one case, given it or its name.

        Raises:
            KeyError: there is no such case.
        """
        name = case if isinstance(case, str) else case.name
        if all(name != each.name for each in self.cases):
            raise KeyError(name)
        return Summary.of(self._trials_of(name), confidence=self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it, see docs/evals.md."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "model": self.model,
            "max_concurrency": self.max_concurrency,
            "confidence": self.confidence,
            "seconds": self.seconds,
            "summary": self.summary.to_dict(),
            "cases": [self._case(case) for case in self.cases],
        }

    def to_json(self) -> str:
        """Return the report as one JSON document, see docs/evals.md."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def write(self, path: str | Path) -> None:
        """Write the JSON document to a file.

        Raises:
            OSError: it cannot be written.
        """
        Path(path).write_text(f"{self.to_json()}\n", encoding="utf-8")

    def __rich__(self) -> Table:
        return _table(self)

    def _trials_of(self, name: str | None) -> list[Trial]:
        return [trial for trial in self.trials if trial.case.name == name]

    def _case(self, case: Case) -> dict[str, Any]:
        return {
            "name": case.name,
            "inputs": {name: short_repr(value, _SHOWN_CHARS) for name, value in case.inputs.items()},
            "expected": None if case.expected is NOTHING else short_repr(case.expected, _SHOWN_CHARS),
            "summary": self.of_case(case).to_dict(),
            "trials": [_trial(trial) for trial in self._trials_of(case.name)],
        }


def _trial(trial: Trial) -> dict[str, Any]:
    error = None if trial.exception is None else type(trial.exception).__name__
    return {
        "number": trial.number,
        "status": trial.status,
        "reason": trial.reason,
        "value": short_repr(trial.value, _SHOWN_CHARS),
        "exception": error,
        "verdicts": {
            name: {"passed": each.passed, "score": each.score, "reason": each.reason}
            for name, each in trial.verdicts.items()
        },
        "run_id": None if trial.run is None else trial.run.run_id,
        "turns": trial.turns,
        "usage": usage_as_json(trial.usage),
        "judging": usage_as_json(trial.judging),
        "seconds": trial.seconds,
    }


def _table(report: Report) -> Table:
    """Draw a row for each case, one for all, and one for the mean trial."""
    from rich.table import Table
    from rich.text import Text

    title = report.name if report.model is None else f"{report.name}, {report.model}"
    table = Table(title=Text(_printable(title)))
    table.add_column("case")
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    for case in report.cases:
        table.add_row(Text(_printable(str(case.name))), *_cells(report.of_case(case)))
    table.add_section()
    table.add_row("all", *_cells(report.summary))
    table.add_row("a trial", *_means(report))
    if report.summary.stopped:
        table.caption = f"{report.summary.stopped} stopped: the budget was used up"
    return table


def _cells(figures: Summary) -> list[str]:
    return [
        f"{figures.passed}/{figures.ended}",
        _rate(figures),
        str(figures.errors or ""),
        str(figures.turns),
        f"{figures.usage.tokens + figures.judging.tokens:,}",
        _cost(figures.cost),
        f"{figures.seconds:.1f}",
    ]


def _means(report: Report) -> list[str]:
    """Return the figures of the mean trial, the cost of judges included."""
    figures = Summary.of([each for each in report.trials if each.status != "stopped"])
    count = figures.ended
    if not count:
        return [""] * len(_COLUMNS)
    cost = None if figures.cost is None else figures.cost / count
    tokens = (figures.usage.tokens + figures.judging.tokens) / count
    score = "" if figures.score is None else f"score {figures.score:.3g}"
    seconds = f"{figures.seconds / count:.1f}"
    return ["", score, "", f"{figures.turns / count:.1f}", f"{tokens:,.0f}", _cost(cost), seconds]


def _rate(figures: Summary) -> str:
    if figures.pass_rate is None or figures.interval is None:
        return "-"
    low, high = figures.interval
    return f"{figures.pass_rate:.0%} [{low:.0%}, {high:.0%}]"


def _cost(dollars: float | None) -> str:
    if dollars is None:
        return "unknown"
    return "0" if dollars < _PRICELESS else f"${dollars:.4f}"


def _printable(text: str) -> str:
    """Return a text without control characters of a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)
