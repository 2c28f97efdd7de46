"""The check of a union: the member that takes the value as it is wins."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from agex.contract.mismatch import Mismatch
from agex.contract.walk import Check, Walk, once

__all__ = ["union_check"]


def union_check(exact: Collection[type], members: Sequence[Check], expected: str) -> Check:
    """Make the check of a union.

    A member that returns the value itself comes before one that has to build something; of
    those, the one that uses most of a dict's keys, then the first.

    Args:
        exact: classes whose direct instances fit without a look at the members.
        members: the checks of all members.
        expected: what to say when none fits.
    """

    def by_members(value: Any, walk: Walk) -> Any:
        built: list[Any] = []
        failed: list[Mismatch] = []
        for member in members:
            try:
                result = member(value, walk)
            except Mismatch as mismatch:
                failed.append(mismatch.with_traceback(None))
                continue
            if result is value:
                return value
            built.append(result)
        if built:
            return max(built, key=_keys_used)
        raise _closest(value, failed, expected)

    met_once = once(by_members)
    # By identity: a class of the guest may claim to equal another one.
    exact_ids = frozenset(map(id, exact))

    def check(value: Any, walk: Walk) -> Any:
        return value if id(type(value)) in exact_ids else met_once(value, walk)

    return check


def _keys_used(built: Any) -> int:
    return len(getattr(built, "model_fields_set", ()))


def _closest(value: Any, failed: list[Mismatch], expected: str) -> Mismatch:
    """Choose what to report: the member that took the value's outside, if there is one."""
    inside = [mismatch for mismatch in failed if not mismatch.is_about(value)]
    if not inside:
        return Mismatch.of(expected, value)
    return min(inside, key=lambda mismatch: mismatch.count)
