"""The interval of a pass rate, against published values and against scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest  # scikit-learn brings it

from agex.errors import DefinitionError
from agex.evals import wilson_interval

PUBLISHED = [
    # Newcombe, Two-sided confidence intervals for the single proportion, 1998, table I, method 3.
    (81, 263, (0.2553, 0.3662)),
    (15, 148, (0.0624, 0.1605)),
    (0, 20, (0.0, 0.1611)),
    (1, 29, (0.0061, 0.1718)),
]


@pytest.mark.parametrize(("passed", "trials", "interval"), PUBLISHED)
def test_the_interval_is_the_published_one(passed, trials, interval):
    assert wilson_interval(passed, trials) == pytest.approx(interval, abs=0.000_05)


trials_and_passed = st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(trials_and_passed, st.floats(0.01, 0.999))
def test_the_interval_is_that_of_scipy(trials_and_passed, confidence):
    trials, passed = trials_and_passed
    reference = binomtest(passed, trials).proportion_ci(confidence_level=confidence, method="wilson")
    ours = wilson_interval(passed, trials, confidence)
    assert ours == pytest.approx((reference.low, reference.high), rel=1e-9, abs=1e-12)


@given(trials_and_passed)
def test_the_interval_holds_the_rate_and_stays_within_0_and_1(trials_and_passed):
    trials, passed = trials_and_passed
    low, high = wilson_interval(passed, trials)
    assert 0 <= low <= passed / trials <= high <= 1
    assert low < high


@given(trials_and_passed)
def test_failures_have_the_mirrored_interval(trials_and_passed):
    trials, passed = trials_and_passed
    low, high = wilson_interval(passed, trials)
    assert wilson_interval(trials - passed, trials) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0), "0 passed of 0 trials"),
        ((3, 2), "3 passed of 2 trials"),
        ((-1, 2), "-1 passed of 2 trials"),
        ((1, 2, 1.0), "confidence=1.0 is not between 0 and 1"),
        ((1, 2, 0), "confidence=0 is not between 0 and 1"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(DefinitionError, match=message):
        wilson_interval(*arguments)
