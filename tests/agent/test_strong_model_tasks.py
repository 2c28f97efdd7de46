"""A strong model that writes natural code loses few turns to the product."""

from __future__ import annotations

import pytest
from strong_model_tasks import SCENARIOS, played

WASTED: dict[str, int] = {}
"""Turns that are lost today, by scenario."""


@pytest.mark.parametrize("name", SCENARIOS)
def test_natural_code_solves_the_task(name):
    value, _, texts = played(name)
    assert len(texts) <= WASTED.get(name, 0), texts
    if not texts:
        assert value == SCENARIOS[name].expected


def test_there_are_thirty_of_them():
    assert len(SCENARIOS) >= 30
