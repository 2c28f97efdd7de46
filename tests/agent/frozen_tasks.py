"""Tasks at the top level of a module, as a program has them, for tests of freezing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

from annotated_types import Ge

from agex import Agent

agent = Agent(name="shop")
agent.module(math, name="maths")


class Kind(Enum):
    """What a customer is."""

    GUEST = "guest"
    MEMBER = "member"


@dataclass(frozen=True)
class Item:
    """A line of an order."""

    name: str
    price: float
    count: int = 1


class Rates:
    """A live object."""

    def of(self, kind: Kind) -> float:
        """Return the discount."""
        return 0.1 if kind is Kind.MEMBER else 0.0


rates = Rates()
agent.module(rates, name="rates")


@agent.fn
def tax(amount: float) -> float:
    """Return the tax on an amount."""
    return amount * 0.2


@agent.fn(external=True)
def charge(amount: float) -> str:
    """Take the money."""
    return f"charged {amount}"


def is_not_negative(value: float, inputs: object) -> bool:
    """Check the sign."""
    return value >= 0


@agent.task(reuse=True)
def slug(title: str, separator: Literal["-", "_"] = "-") -> str:
    """Turn a title into a piece of a web address.

    >>> slug("Hello, World")
    'hello-world'
    >>> slug("")
    Traceback (most recent call last):
    ValueError: nothing is left
    """


@agent.task(reuse=True, checks=[is_not_negative, lambda value, inputs: True])
def total(items: list[Item], kind: Kind = Kind.GUEST) -> float:
    """Add up an order, with discount and tax."""


@agent.task(reuse=True, examples=[(((12,), {}), [2, 2, 3])])
def factors(n: Annotated[int, Ge(1)]) -> list[int]:
    """Return the prime factors."""


@agent.task(reuse=True)
async def words(text: str, **options: int) -> dict[str, int]:
    """Count the words."""


@agent.task(reuse=True)
def biggest(items: tuple[Item, ...]) -> Item | None:
    """Return the dearest item."""


CODES = {
    "slug": [
        "import re\nTABLE = {}\nfor sign in '.,!?':\n    TABLE[ord(sign)] = None\nprint(TABLE)",
        (
            "import re\nimport os.path as unused\n\nSPACES = re.compile(r'\\s+')\nDROPPED = {}\n"
            "for sign in '.,!?':\n    DROPPED[ord(sign)] = None\nprint(DROPPED)\n\n\n"
            "def slug(title, separator='-'):\n"
            "    # commas go first\n"
            "    plain = title.translate(DROPPED).strip().lower()\n"
            "    if not plain:\n        raise ValueError('nothing is left')\n"
            "    parts = []\n    for part in SPACES.split(plain):\n        parts.append(part)\n"
            "    return separator.join(parts)\n"
        ),
    ],
    "total": [
        "def net(item):\n    return item.price * item.count",
        (
            "import maths\n\ndef total(items, kind=Kind.GUEST):\n"
            "    amount = maths.fsum(net(each) for each in items)\n"
            "    amount = amount * (1 - rates.of(kind))\n"
            "    return round(amount + tax(amount), 2)"
        ),
    ],
    "factors": [
        (
            "def factors(n: int):\n  found, divisor = [], 2\n  while n > 1:\n    while n % divisor == 0:\n"
            "      found.append(divisor); n //= divisor\n    divisor += 1\n  return found"
        ),
    ],
    "words": [
        (
            "from collections import Counter\n\nasync def words(text, **options):\n"
            "    found = Counter(text.lower().split())\n"
            "    return {word: n for word, n in found.most_common(options.get('most'))}"
        ),
    ],
    "biggest": ["biggest = lambda items: max(items, key=lambda one: one.price, default=None)"],
}
CALLS = {
    "slug": [("One Two!",), ("A  b", "_")],
    "total": [([Item("pen", 1.5, 2)],), ([Item("ink", 10.0)], Kind.MEMBER)],
    "factors": [(1,), (60,)],
    "words": [("a b A",)],
    "biggest": [((Item("pen", 1.5), Item("ink", 2.5)),), ((),)],
}
