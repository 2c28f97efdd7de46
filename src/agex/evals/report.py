"""The report of an evaluation: figures, a table, JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from agex.contract import short_repr
from agex.errors import DefinitionError
from agex.evals.case import NOTHING, Case
from agex.evals.trial import Status, Trial
from agex.models import Usage

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["SCHEMA", "Report", "Summary", "wilson_interval"]

SCHEMA = "agex.evals/1"
"""Names the form of a report's JSON; the number changes when a reader of it would break."""

_SHOWN_CHARS = 500
"""Of one value in a report's JSON."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The figures of some trials. Stopped trials are counted apart, and in turns, tokens and cost."""

    trials: int
    passed: int
    failed: int
    errors: int
    stopped: int
    turns: int
    usage: Usage
    """Of what was tried."""
    judging: Usage
    """Of judges."""
    seconds: float
    """Wall seconds, the trials' own added up."""
    score: float | None
    """The mean over the trials with a score."""
    confidence: float = 0.95

    @classmethod
    def of(cls, trials: Iterable[Trial], *, confidence: float = 0.95) -> Summary:
        """Add trials up."""
        each = list(trials)
        scores = [one.score for one in each if one.score is not None]

        def number(status: Status) -> int:
            return sum(one.status == status for one in each)

        return cls(
            trials=len(each),
            passed=number("passed"),
            failed=number("failed"),
            errors=number("error"),
            stopped=number("stopped"),
            turns=sum(one.turns for one in each),
            usage=sum((one.usage for one in each), Usage()),
            judging=sum((one.judging for one in each), Usage()),
            seconds=sum(one.seconds for one in each),
            score=sum(scores) / len(scores) if scores else None,
            confidence=confidence,
        )

    @property
    def ended(self) -> int:
        """How many came to an end: passed, failed, or an error."""
        return self.trials - self.stopped

    @property
    def pass_rate(self) -> float | None:
        """Passed of those that ended; an error counts against it. None where none ended."""
        return self.passed / self.ended if self.ended else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The Wilson interval of the pass rate; None where no trial ended."""
        return wilson_interval(self.passed, self.ended, self.confidence) if self.ended else None

    @property
    def cost(self) -> float | None:
        """US dollars, judges included; None where a price is unknown."""
        return (self.usage + self.judging).cost

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {
            "trials": self.trials,
            "passed": self.passed,
            "failed": self.failed,
            "errors": self.errors,
            "stopped": self.stopped,
            "pass_rate": self.pass_rate,
            "interval": None if self.interval is None else list(self.interval),
            "score": self.score,
            "turns": self.turns,
            "usage": _usage(self.usage),
            "judging": _usage(self.judging),
            "seconds": self.seconds,
        }


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
        from agex.evals.table import table_of

        return table_of(self)

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
        "usage": _usage(trial.usage),
        "judging": _usage(trial.judging),
        "seconds": trial.seconds,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost,
    }


def wilson_interval(passed: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval that holds the true pass rate with a given confidence.

    Unlike the normal approximation it stays within 0 and 1, and is of use for few trials and for
    rates of 0 and 1. It takes the trials for independent. Source: Wilson, Probable Inference, the Law
    of Succession, and Statistical Inference, 1927; without a correction for continuity.

    Args:
        passed: how many trials passed.
        trials: how many there were.
        confidence: between 0 and 1, both excluded.

    Raises:
        DefinitionError: there are no trials, or the numbers do not fit.
    """
    if not 0 <= passed <= trials or trials < 1:
        raise DefinitionError(
            f"{passed} passed of {trials} trials has no interval; give 0 <= passed <= trials."
        )
    if not 0 < confidence < 1:
        raise DefinitionError(f"confidence={confidence!r} is not between 0 and 1; give e.g. 0.95.")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = passed / trials
    center = rate + z * z / (2 * trials)
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    # At the ends the bound is exact, and rounding must not say otherwise.
    low = 0.0 if passed == 0 else max(0.0, (center - half) / scale)
    high = 1.0 if passed == trials else min(1.0, (center + half) / scale)
    return low, high
