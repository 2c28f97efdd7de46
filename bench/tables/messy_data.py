"""Generators of messy data: a value of each kind, in the forms that people and programs write it."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["CITIES", "NAMES", "PRODUCTS", "Mess"]

T = TypeVar("T")

NAMES = [
    "Anna Berg",
    "Boris Lang",
    "Chloé Dubois",
    "David Ek",
    "Eva Novák",
    "Farid Haddad",
    "Grace Lee",
    "Hugo Silva",
]
CITIES = ["Berlin", "Lyon", "Oslo", "Porto", "Wien"]
PRODUCTS = ["blue pen", "desk lamp", "notebook", "stapler", "whiteboard"]


class Mess:
    """Draws from one seed, so that the same seed has the same data in every process."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, share: float) -> bool:
        """Return whether something that happens in a share of all cases happens."""
        return self._random.random() < share

    def one(self, choices: Sequence[T]) -> T:
        """Return one of several."""
        return choices[int(self._random.random() * len(choices))]

    def whole(self, low: int, high: int) -> int:
        """Return a whole number, both bounds included."""
        return low + int(self._random.random() * (high - low + 1))

    def money(self, low: int = 1, high: int = 500) -> float:
        """Return an amount with two decimals."""
        return self.whole(low * 100, high * 100) / 100

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in another order."""
        order = sorted((self._random.random(), index) for index in range(len(items)))
        return [items[index] for _, index in order]

    def day(self, first: str = "2024-01-01", days: int = 180) -> dt.date:
        """Return a day of a span."""
        return dt.date.fromisoformat(first) + dt.timedelta(days=self.whole(0, days - 1))

    def date_text(self, day: dt.date) -> str:
        """Return a day as somebody writes it: the month by name, or days before months with dots."""
        forms = ("%Y-%m-%d", "%d.%m.%Y", "%b %d, %Y", "%Y%m%d")
        return day.strftime(self.one(forms))

    def spaced(self, text: str) -> str:
        """Return a text in another case, or with blanks around it."""
        return self.one([text, text, text.upper(), text.lower(), f" {text}", f"{text}  "])
