"""The budget of a task with everything it calls, and the ledger of what is spent."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

from agex.agent.registration import checks_keywords
from agex.errors import BudgetExceeded, DefinitionError
from agex.models.base import Usage

__all__ = ["Budget", "Ledger"]


@checks_keywords
@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limit a task and all the tasks it calls, together. None means no limit.

    It is checked before each request to a model, so the request that crosses a limit is
    still paid and answered; the next one is not sent. Where ``usd`` is set, a reply whose
    price is unknown ends the task at once, before anything of it is executed.
    """

    tokens: int | None = None
    """Input and output tokens."""
    usd: float | None = None
    """US dollars."""
    seconds: float | None = None
    """Wall seconds since the task began, without what was imported for it. They end a waiting request too."""
    calls: int | None = None
    """Requests to models, failed ones included."""

    def __post_init__(self) -> None:
        for field in fields(self):
            limit = getattr(self, field.name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
                raise DefinitionError(f"Budget({field.name}={limit!r}): give a number, more than 0.")
            if limit is not None and not limit > 0:
                raise DefinitionError(
                    f"Budget({field.name}={limit!r}) leaves nothing to spend; give more than 0."
                )


class Ledger:
    """Count what one call spends, against its own budget and those of its callers."""

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        parent: Ledger | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget or Budget()
        self.parent = parent
        self._clock = clock
        self._started = clock()
        self._spent: float | None = None
        self._used = Usage()
        self._under_way = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> Usage:
        """Usage of this call and all below it so far."""
        with self._lock:
            return self._used

    @property
    def seconds(self) -> float:
        """Wall seconds that the call has taken."""
        return self._clock() - self._started if self._spent is None else self._spent

    @property
    def seconds_left(self) -> float:
        """Wall seconds until the first limit of this call and those above it; infinite for no limit."""
        limits = ((ledger, ledger.budget.seconds) for ledger in self._chain())
        return min((most - ledger.seconds for ledger, most in limits if most is not None), default=math.inf)

    def restore(self, used: Usage, seconds: float) -> None:
        """Go on from what a run had spent when it stopped."""
        with self._lock:
            self._used = used
        self._started = self._clock() - seconds

    def begin(self) -> None:
        """Start the clock now: loading until here does not count for the call."""
        self._started = self._clock()

    def pause(self) -> None:
        """Stop the clock: the call is over, or waits for its caller."""
        self._spent = self.seconds

    def resume(self) -> None:
        """Let the clock go on from where it stopped."""
        self._started = self._clock() - self.seconds
        self._spent = None

    def admit(self) -> None:
        """Let the next request pass, or raise BudgetExceeded."""
        for ledger in self._chain():
            with ledger._lock:
                ledger._check()

    def reserve(self) -> None:
        """Like :meth:`admit`, and count the request from now on: others may be sent meanwhile.

        One that is given up is never settled, and stays counted: it was sent.
        """
        passed: list[Ledger] = []
        try:
            for ledger in self._chain():
                with ledger._lock:
                    ledger._check()
                    ledger._under_way += 1
                passed.append(ledger)
        except BudgetExceeded:
            for ledger in passed:
                with ledger._lock:
                    ledger._under_way -= 1
            raise

    def settle(self, usage: Usage) -> None:
        """Book the usage of a request that was reserved, see :meth:`charge`."""
        self._book(usage, settled=1)

    def charge(self, usage: Usage) -> None:
        """Book *usage* here and with every caller; an unknown price breaks a limit in dollars.

        Raises:
            BudgetExceeded: the price is unknown and ``usd`` is limited.
        """
        self._book(usage)

    def _book(self, usage: Usage, *, settled: int = 0) -> None:
        for ledger in self._chain():
            with ledger._lock:
                ledger._used += usage
                ledger._under_way -= settled
        if usage.cost is None and any(ledger.budget.usd is not None for ledger in self._chain()):
            raise BudgetExceeded(
                "The price of a model request is unknown, so the budget in dollars cannot be kept; "
                "limit tokens= instead of usd=, or use a model with a known price."
            )

    def _chain(self) -> Iterator[Ledger]:
        ledger: Ledger | None = self
        while ledger is not None:
            yield ledger
            ledger = ledger.parent

    def _check(self) -> None:
        used, budget = self._used, self.budget
        spent = (
            ("tokens", used.tokens, budget.tokens),
            ("usd", used.cost, budget.usd),
            ("seconds", round(self.seconds, 3), budget.seconds),
            ("calls", used.requests + self._under_way, budget.calls),
        )
        for name, amount, limit in spent:
            if limit is not None and (amount is None or amount >= limit):
                raise BudgetExceeded(f"The budget of {limit} {name} is used up: {amount} {name} so far.")
