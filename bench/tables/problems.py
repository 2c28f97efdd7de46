"""All problems, the families in turns: the first n of them are of every kind."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from bench.tables.families import (
    databases,
    dates,
    duplicates,
    exports,
    extraction,
    gaps,
    joins,
    logs,
    pivots,
    units,
)

if TYPE_CHECKING:
    from bench.tables.problem import Problem

__all__ = ["FAMILIES", "PROBLEMS"]

FAMILIES: dict[str, list[Problem]] = {
    module.PROBLEMS[0].family: module.PROBLEMS
    for module in (joins, dates, units, duplicates, pivots, gaps, extraction, databases, logs, exports)
}

PROBLEMS: list[Problem] = [
    problem for turn in zip_longest(*FAMILIES.values()) for problem in turn if problem is not None
]
