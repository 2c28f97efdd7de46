"""The memo of a deep copy, which only the functions of ``copy`` can read."""

from __future__ import annotations

import copy
import sys
from typing import Any, NoReturn

from agex.sandbox.runtime.context import asking

__all__ = ["Memo", "shut"]

_COPYING: Any = vars(copy)


class Memo:
    """Maps the ids of what was copied to the copies, for the functions of ``copy``.

    Other code sees only the entries that were added by hand. These are used as copies of guest objects only:
    an entry for the id of a host object would become part of a copy of that object.
    """

    __slots__ = ("_by_hand", "_noted")

    def __init__(self, noted: dict[int, Any], by_hand: dict[int, Any] | None = None) -> None:
        self._noted = noted
        self._by_hand: dict[int, Any] = {} if by_hand is None else by_hand

    def get(self, key: int, default: Any = None) -> Any:
        """Return the copy noted for an id."""
        subject = _copied()
        if subject is not _NOTHING:
            if key in self._noted:
                return self._noted[key]
            if not _is_own(subject):
                return default
        return self._by_hand.get(key, default)

    def __getitem__(self, key: int) -> Any:
        subject = _copied()
        if subject is not _NOTHING and (key in self._noted or not _is_own(subject)):
            return self._noted[key]
        return self._by_hand[key]

    def __setitem__(self, key: int, value: Any) -> None:
        subject = _copied()
        if subject is not _NOTHING:
            self._noted[key] = value
        if subject is _NOTHING or _is_own(subject):
            self._by_hand[key] = value

    def __contains__(self, key: object) -> bool:
        return key in self._by_hand

    def __len__(self) -> int:
        return len(self._by_hand)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a memo of deepcopy() cannot be copied")


def _copied() -> Any:
    """Return the object that the calling function of ``copy`` copies; `_NOTHING` for any other caller."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - the caller
    return frame.f_locals.get("x", None) if frame.f_globals is _COPYING else _NOTHING


def _is_own(value: Any) -> bool:
    guards = asking()
    return guards is not None and guards.is_own(value)


def shut(memo: Any) -> Any:
    """Return a memo as the ``__deepcopy__`` of a guest class gets it."""
    return Memo(memo) if type(memo) is dict else memo


_NOTHING = object()
