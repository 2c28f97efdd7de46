"""The figures of some trials, and the interval of a pass rate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from agex.errors import DefinitionError
from agex.evals.trial import Status, Trial
from agex.models import Usage

__all__ = ["Summary", "usage_as_json", "wilson_interval"]


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
            "usage": usage_as_json(self.usage),
            "judging": usage_as_json(self.judging),
            "seconds": self.seconds,
        }


def usage_as_json(usage: Usage) -> dict[str, Any]:
    """Return usage as a report's JSON has it."""
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
