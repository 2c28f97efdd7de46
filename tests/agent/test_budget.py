from __future__ import annotations

import pytest

from agex.agent.call.budget import Budget, Ledger
from agex.errors import BudgetExceeded, DefinitionError
from agex.models.base import Usage


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def used(**fields: float) -> Usage:
    return Usage(requests=1, **fields)


def test_a_ledger_without_a_budget_admits_everything():
    ledger = Ledger()
    ledger.charge(used(input_tokens=10**9, cost=None))
    ledger.admit()
    assert ledger.used.tokens == 10**9


@pytest.mark.parametrize(
    ("budget", "usage", "says"),
    [
        (Budget(tokens=100), used(input_tokens=60, output_tokens=40), "100 tokens"),
        (Budget(usd=0.5), used(cost=0.5), "0.5 usd"),
        (Budget(calls=1), used(), "1 calls"),
    ],
)
def test_a_request_past_the_budget_is_not_admitted(budget, usage, says):
    ledger = Ledger(budget)
    ledger.admit()
    ledger.charge(usage)
    with pytest.raises(BudgetExceeded, match=says):
        ledger.admit()


def test_seconds_are_wall_seconds_since_the_call_began():
    clock = Clock()
    ledger = Ledger(Budget(seconds=5), clock=clock)
    clock.now += 4.9
    ledger.admit()
    clock.now += 0.2
    with pytest.raises(BudgetExceeded, match="5 seconds"):
        ledger.admit()


def test_an_unknown_price_breaks_a_budget_in_dollars_at_once():
    ledger = Ledger(Budget(usd=1_000.0))
    with pytest.raises(BudgetExceeded, match="unknown"):
        ledger.charge(used(cost=None))


def test_what_a_called_task_uses_counts_for_its_caller():
    outer = Ledger(Budget(tokens=100))
    inner = Ledger(parent=outer)
    inner.charge(used(output_tokens=100))
    assert outer.used.output_tokens == 100
    with pytest.raises(BudgetExceeded):
        inner.admit()
    with pytest.raises(BudgetExceeded):
        outer.admit()


def test_the_unknown_price_of_a_called_task_breaks_its_callers_budget():
    inner = Ledger(parent=Ledger(Budget(usd=1.0)))
    with pytest.raises(BudgetExceeded, match="unknown"):
        inner.charge(used(cost=None))


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_budget_of_nothing_is_refused(limit):
    with pytest.raises(DefinitionError, match="tokens="):
        Budget(tokens=limit)
