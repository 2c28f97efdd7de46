"""What is remembered of a class statement of a guest's."""

from __future__ import annotations

import itertools
import types
from typing import Any

__all__ = ["Statement"]


class Statement:
    """A class statement as it ran, and what became of its class.

    Attributes:
        body: the function that made the namespace.
        bases: as they were said.
        keywords: beside them.
        dressed: names that a decorator of the statement set or deleted on the class.
        altered: those that were set or deleted since the statement ended.
        number: counts the statements, in the order in which they began.
    """

    __slots__ = ("altered", "bases", "body", "dressed", "keywords", "number")

    _numbers = itertools.count()

    def __init__(self, body: types.FunctionType, bases: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.body = body
        self.bases = bases
        self.keywords = keywords
        self.dressed: set[str] = set()
        self.altered: set[str] = set()
        self.number = next(self._numbers)
