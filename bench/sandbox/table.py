"""The report: ratios by workload and side, then what did not run and why, then the fixed costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.sandbox.pairs import Cell
    from bench.sandbox.runaway import Ending

__all__ = ["geometric_mean", "lines"]


def geometric_mean(cells: Sequence[Cell]) -> float | None:
    """Average the ratios of the cells that have one; None without any."""
    ratios = [cell.ratio for cell in cells if cell.ratio is not None]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def lines(cells: Sequence[Cell], fixed: Mapping[str, float], endings: Sequence[Ending]) -> Iterator[str]:
    """Give the lines of the report."""
    if cells:
        yield from _ratios(cells)
        yield from _reasons(cells)
    if fixed:
        yield ""
        yield from (f"{name:<42} {_number(value):>10}" for name, value in fixed.items())
    if endings:
        yield ""
        yield from (f"{e.program:<26} {_over(e):>16}  {e.error}" for e in endings)


def _ratios(cells: Sequence[Cell]) -> Iterator[str]:
    sides = list(dict.fromkeys(cell.side for cell in cells))
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    found = {(cell.side, cell.workload): cell for cell in cells}
    yield f"{'ratio to exec (lower is better)':<32}{'exec, ms':>10}" + "".join(
        f"{side:>18}" for side in sides
    )
    for workload in workloads:
        row = [found.get((side, workload)) for side in sides]
        native = next((cell.native for cell in row if cell is not None and cell.native), 0.0)
        yield f"{workload:<32}{native * 1e3:>10.1f}" + "".join(f"{_entry(cell):>18}" for cell in row)
    ends = []
    for side in sides:
        column = [cell for cell in cells if cell.side == side]
        mean, ran = geometric_mean(column), sum(cell.status == "ok" for cell in column)
        ends.append(f"{'-' if mean is None else _number(mean)} ({ran}/{len(column)})")
    yield f"{'geometric mean (ran)':<42}" + "".join(f"{end:>18}" for end in ends)


def _entry(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if cell.ratio is None:
        return "cannot run" if cell.status == "cannot" else cell.status
    return f"{_number(cell.ratio)} ±{(cell.spread or 0.0) / 2 / cell.ratio:.0%}"


def _reasons(cells: Sequence[Cell]) -> Iterator[str]:
    failed = [cell for cell in cells if cell.status != "ok"]
    if failed:
        yield ""
    for cell in failed:
        yield f"{cell.side}, {cell.workload}: {cell.status}: {cell.reason}"


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 20 else f"{value:.0f}"


def _over(ending: Ending) -> str:
    return "not ended" if ending.over is None else f"{ending.over:+.2f} s"
