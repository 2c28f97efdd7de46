"""How far a pass rate can be trusted."""

from __future__ import annotations

import math
from statistics import NormalDist

from agex.errors import DefinitionError

__all__ = ["wilson_interval"]


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
