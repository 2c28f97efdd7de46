"""A report as a table in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agex.evals.report import Report, Summary

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["table_of"]

COLUMNS = ("passed", "pass rate", "errors", "turns", "tokens", "cost", "seconds")
PRICELESS = 0.000_05
"""US dollars that four places show as nothing."""


def table_of(report: Report) -> Table:
    """Draw a row for each case, one for all, and one for the mean trial."""
    from rich.table import Table
    from rich.text import Text

    title = report.name if report.model is None else f"{report.name}, {report.model}"
    table = Table(title=Text(_printable(title)))
    table.add_column("case")
    for name in COLUMNS:
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
        return [""] * len(COLUMNS)
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
    return "0" if dollars < PRICELESS else f"${dollars:.4f}"


def _printable(text: str) -> str:
    """Return a text without control characters of a terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)
