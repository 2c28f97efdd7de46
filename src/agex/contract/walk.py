"""One pass over a value: what was seen, so that cycles end and shared parts are checked once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from agex.contract.mismatch import Mismatch, Tally

__all__ = ["Check", "Walk", "attempt", "changed", "once", "parts"]


class Walk:
    """The state of one check.

    Attributes:
        keep_numbers: leave a numpy scalar as it is where a Python number is expected.
        applies: put what validators and the like make of a value in its place; else they only judge it,
            because it went through them already, or pydantic is going to put it through them.
        visits: the result of each (check, value) pair; the value is kept so that its id stays its own.
    """

    __slots__ = ("_family", "applies", "keep_numbers", "visits")

    def __init__(self, *, keep_numbers: bool, applies: bool = True) -> None:
        self.keep_numbers = keep_numbers
        self.applies = applies
        self.visits: dict[tuple[int, int], Visit] = {}
        self._family: dict[tuple[bool, bool], Walk] = {(keep_numbers, applies): self}

    def building(self) -> Walk:
        """Return the walk for parts of what is built: nobody else holds those, so numbers convert."""
        return self._like(keep_numbers=False, applies=self.applies)

    def judging(self) -> Walk:
        """Return the same walk with validators that only judge."""
        return self._like(keep_numbers=self.keep_numbers, applies=False)

    def applying(self) -> Walk:
        """Return the same walk with validators that put their values in place."""
        return self._like(keep_numbers=self.keep_numbers, applies=True)

    def _like(self, *, keep_numbers: bool, applies: bool) -> Walk:
        kind = (keep_numbers, applies)
        if kind not in self._family:
            other = self._family[kind] = Walk(keep_numbers=keep_numbers, applies=applies)
            other._family = self._family
        return self._family[kind]


class Visit:
    """One value met by one check."""

    __slots__ = ("failed", "going_on", "result", "revisited", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.result = value
        self.going_on = True
        self.revisited = False
        self.failed: Mismatch | None = None

    def recall(self) -> Any:
        """Return the result of the check; a value that contains itself is taken to fit."""
        if self.failed is not None:
            raise Mismatch(self.failed.problems, self.failed.count)
        self.revisited = self.revisited or self.going_on
        return self.result


Check: TypeAlias = Callable[[Any, Walk], Any]
"""Returns the value, or what was built from it; raises :class:`Mismatch`."""


def once(check: Check) -> Check:
    """Make a check of values with parts meet each value only once in a walk."""

    def met_once(value: Any, walk: Walk) -> Any:
        key = (id(met_once), id(value))
        known = walk.visits.get(key)
        if known is not None:
            return known.recall()
        visit = walk.visits[key] = Visit(value)
        try:
            visit.result = check(value, walk)
        except Mismatch as mismatch:
            # Without its traceback, which would hold every frame of the walk.
            visit.failed = mismatch.with_traceback(None)
            raise
        finally:
            visit.going_on = False
        if visit.revisited and visit.result is not value:
            # Parts of it still point to the value as it was.
            visit.failed = Mismatch.of("a value that contains itself must already fit, with nothing to build")
            raise visit.failed
        return visit.result

    return met_once


def parts(
    values: Iterable[Any], check: Check, walk: Walk, tally: Tally, step: Callable[[int], str]
) -> list[Any]:
    """Check every part; note what does not fit in *tally*, with the step to its index."""
    results = []
    for index, value in enumerate(values):
        try:
            results.append(check(value, walk))
        except Mismatch as mismatch:
            tally.add(mismatch, "" if tally.is_full else step(index))
            results.append(value)
    return results


def attempt(check: Check, value: Any, walk: Walk, tally: Tally, step: str) -> Any:
    """Check one part; note in *tally* if it does not fit."""
    try:
        return check(value, walk)
    except Mismatch as mismatch:
        tally.add(mismatch, step)
        return value


def changed(before: Iterable[Any], after: Iterable[Any]) -> bool:
    """Return whether any part was rebuilt."""
    return not all(map(operator.is_, before, after))
