"""A strong model that writes natural code loses few turns to the product."""

from __future__ import annotations

import pytest
from strong_model_tasks import SCENARIOS, played

WASTED = {"monthly": 1, "chart": 1, "timed": 1, "correlation": 1, "tests": 1}
"""Turns that are lost today, by scenario: numpy beside pandas, matplotlib.dates, timeit, unittest."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_natural_code_solves_the_task(name):
    value, _, texts = played(name)
    assert len(texts) <= WASTED.get(name, 0), texts
    if not texts:
        assert value == SCENARIOS[name].expected


def test_there_are_thirty_of_them():
    assert len(SCENARIOS) >= 30
