"""``abc`` for guest code: its decorators mark guest functions only."""

from __future__ import annotations

import abc
from typing import Any

from agex.sandbox.classes import stand_ins
from agex.sandbox.stdlib.decorators import writing

__all__ = ["ABC"]

abstractmethod = writing(abc.abstractmethod)


class _abstractclassmethod(classmethod):  # type: ignore[type-arg]  # noqa: N801 - it stands for abc's
    """``abc.abstractclassmethod`` of a guest function."""

    def __init__(self, function: Any, /) -> None:
        super().__init__(abstractmethod(function))


class _abstractstaticmethod(staticmethod):  # type: ignore[type-arg]  # noqa: N801 - it stands for abc's
    """``abc.abstractstaticmethod`` of a guest function."""

    def __init__(self, function: Any, /) -> None:
        super().__init__(abstractmethod(function))


ABC = {
    "abstractclassmethod": stand_ins.stands_for(abc.abstractclassmethod, _abstractclassmethod),
    "abstractmethod": abstractmethod,
    "abstractstaticmethod": stand_ins.stands_for(abc.abstractstaticmethod, _abstractstaticmethod),
}
"""The members of ``abc`` that are guarded."""
