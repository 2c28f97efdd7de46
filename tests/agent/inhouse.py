"""Warehouse rules of a company: a module of its own, with many classes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import NamedTuple, TypedDict

__all__ = [
    "Category",
    "Item",
    "Order",
    "Position",
    "Rates",
    "Shipment",
    "Supplier",
    "Warehouse",
    "load",
    "tax",
]

_SECRET = "not for the model"


class Category(Enum):
    """The kind of a thing that is stored."""

    TOOL = "tool"
    PART = "part"
    FOOD = "food"


class Position(NamedTuple):
    """A place in a warehouse."""

    aisle: int
    shelf: str = "A"


class Rates(TypedDict, total=False):
    """Tax rates by category."""

    tool: float
    food: float


@dataclass(frozen=True)
class Item:
    """A thing that is stored."""

    sku: str
    name: str
    price: float
    category: Category = Category.PART
    tags: list[str] = field(default_factory=list)

    def discounted(self, percent: float) -> float:
        """Return the price less some percent."""
        return round(self.price * (1 - percent / 100), 2)


@dataclass
class Supplier:
    """Whom things are bought from."""

    name: str
    country: str
    items: list[Item] = field(default_factory=list)

    def offers(self, sku: str) -> bool:
        """Return whether it sells an item."""
        return any(item.sku == sku for item in self.items)


@dataclass
class Order:
    """An order of one customer."""

    number: int
    lines: dict[str, int]
    placed: date
    paid: bool = False

    def total(self, stock: Warehouse) -> float:
        """Return the sum of the order's lines."""
        return math.fsum(stock[sku].price * count for sku, count in self.lines.items())


@dataclass
class Shipment:
    """An order on its way."""

    order: Order
    carrier: str
    weight_kg: float | None = None

    def label(self) -> str:
        """Return the text of the parcel's label."""
        return json.dumps({"order": self.order.number, "carrier": self.carrier})


class Warehouse:
    """Items by their number."""

    capacity = 1000

    def __init__(self, items: list[Item]) -> None:
        self._items = {item.sku: item for item in items}

    def __getitem__(self, sku: str) -> Item:
        return self._items[sku]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items.values())

    def items(self, category: Category | None = None) -> list[Item]:
        """Return the items, of one category if it is given."""
        return [item for item in self if category in {None, item.category}]

    def find(self, text: str) -> Item | None:
        """Return the first item whose name has the text in it."""
        return next((item for item in self if text in item.name), None)

    @property
    def value(self) -> float:
        """The price of everything together."""
        return sum(item.price for item in self)

    @classmethod
    def empty(cls) -> Warehouse:
        """Return a warehouse without items."""
        return cls([])

    @staticmethod
    def is_sku(text: str) -> bool:
        """Return whether a text could be an item's number."""
        return len(text) == 3 and text.isalnum()


def load(rows: list[dict[str, object]]) -> Warehouse:
    """Return a warehouse of plain rows."""
    return Warehouse([Item(**row) for row in rows])  # type: ignore[arg-type]  # rows are checked by Item


def tax(amount: float, category: Category, rates: Rates | None = None) -> float:
    """Return the tax on an amount."""
    return amount * (rates or {}).get(category.value, 0.2)
