"""Paired timing: native, side, side, native, ... in one process, the answers compared each time."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bench.sandbox.sides import Refused, Run, Side

if TYPE_CHECKING:
    from bench.sandbox.workload import Workload

__all__ = ["Cell", "measure"]

Status = Literal["ok", "wrong", "refused", "cannot"]

Clock = Callable[[], float]

_ENOUGH = 0.15  # seconds of the side's time that make one run long enough to be a measurement
_FIRST = 64  # the part of the work that a slow side is tried with first


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One entry of the table."""

    side: str
    workload: str
    status: Status
    ratio: float | None = None
    """Median over the pairs of the side's time by the native time."""
    spread: float | None = None
    """Upper less lower quartile of those ratios."""
    native: float | None = None
    """Median native time, seconds."""
    size: int = 0
    """The N both ran with."""
    pairs: int = 0
    reason: str = ""
    """Why there is no ratio."""


def measure(name: str, side: Side, workload: Workload, pairs: int, *, full: bool) -> Cell:
    """Time *side* against plain ``exec``.

    With *full*, all of the work is run. Otherwise a slow side gets what it can do in part of a second.
    """
    size = workload.size if full else max(1, workload.size // _FIRST)
    try:
        while True:
            sized = workload.sized(size)
            native, run = side.beside().prepare(sized.source), side.prepare(sized.source)
            expected, answer = native(), run()
            if answer != expected:
                reason = f"gives {str(answer)[:60]} for {str(expected)[:60]}"
                return Cell(side=name, workload=workload.name, status="wrong", size=size, reason=reason)
            if size == workload.size or _timed(run, side.clock, expected) >= _ENOUGH:
                break
            size = min(size * 2, workload.size)
        both = (native, side.plain_clock), (run, side.clock)
        return _paired(name, both, expected=expected, workload=sized, pairs=pairs)
    except Refused as refusal:
        return Cell(side=name, workload=workload.name, status="refused", size=size, reason=str(refusal))
    except BaseException as error:  # noqa: BLE001 - whatever a peer does is its answer
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
        return Cell(side=name, workload=workload.name, status="cannot", size=size, reason=reason)


class _Wrong(Exception):
    """An answer that differs."""


def _paired(
    name: str,
    both: tuple[tuple[Run, Clock], tuple[Run, Clock]],
    *,
    expected: Any,
    workload: Workload,
    pairs: int,
) -> Cell:
    ratios, natives = [], []
    try:
        for i in range(pairs):
            # Every second pair goes the other way round, so that a drift of the machine cancels out.
            order = both if i % 2 == 0 else both[::-1]
            first, second = (_timed(run, clock, expected) for run, clock in order)
            plain, guarded = (first, second) if i % 2 == 0 else (second, first)
            ratios.append(guarded / plain)
            natives.append(plain)
    except _Wrong as wrong:
        return Cell(side=name, workload=workload.name, status="wrong", size=workload.size, reason=str(wrong))
    quartiles = statistics.quantiles(ratios, n=4) if pairs > 1 else [0.0, 0.0, 0.0]
    return Cell(
        side=name,
        workload=workload.name,
        status="ok",
        ratio=statistics.median(ratios),
        spread=quartiles[2] - quartiles[0],
        native=statistics.median(natives),
        size=workload.size,
        pairs=pairs,
    )


def _timed(run: Run, clock: Clock, expected: Any) -> float:
    gc.collect()
    start = clock()
    answer = run()
    seconds = clock() - start
    if answer != expected:
        raise _Wrong(f"gives {str(answer)[:60]} for {str(expected)[:60]}")
    return seconds
