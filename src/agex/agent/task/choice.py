"""The choice among the samples of a task: the first value, the one that most agree on, or the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agex.agent.call.terms import Choose
from agex.contract import preview, same_value
from agex.errors import CheckError, TieError

__all__ = ["Candidate", "chosen", "is_decided"]

SHOWN_CHARS = 200
"""Characters of a candidate's value in the message of a tie."""


@dataclass(frozen=True)
class Candidate:
    """A value that fits the contract, the examples and the checks, and the sample that it comes from."""

    sample: int
    value: Any


def is_decided(choose: Choose, candidates: Sequence[Candidate], left: int) -> bool:
    """Return whether the samples that are still running, *left* of them, can change nothing any more."""
    if left == 0:
        return True
    if choose == "first":
        return bool(candidates)
    if choose != "agree":
        return False
    sizes = sorted((len(group) for group in _agreeing(candidates)), reverse=True)
    return bool(sizes) and sizes[0] > (sizes[1] if len(sizes) > 1 else 0) + left


def chosen(choose: Choose, candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that is taken; there is at least one.

    Raises:
        TieError: two or more values have the same number of samples.
        CheckError: the caller's function failed, or returned none of the values.
    """
    if choose == "first":
        return candidates[0]
    ordered = sorted(candidates, key=lambda one: one.sample)
    if choose == "agree":
        return _agreed(ordered)
    assert not isinstance(choose, str)
    name = getattr(choose, "__name__", type(choose).__name__)
    try:
        value = choose([one.value for one in ordered])
    except Exception as error:
        raise CheckError(f"choose: {name} raised {type(error).__name__}: {error}") from error
    same = [one for one in ordered if one.value is value]
    found = same or [one for one in ordered if _is_same(one.value, value)]
    if not found:
        raise CheckError(
            f"choose: {name} returned {preview(value, SHOWN_CHARS)}, which is none of the {len(ordered)} "
            "values that it was given; return one of them."
        )
    return found[0]


def _agreed(candidates: Sequence[Candidate]) -> Candidate:
    groups = sorted(_agreeing(candidates), key=len, reverse=True)
    best = [group for group in groups if len(group) == len(groups[0])]
    if len(best) == 1:
        return best[0][0]
    named = "; ".join(f"{preview(group[0].value, SHOWN_CHARS)} ({_samples(group)})" for group in best)
    raise TieError(
        f"The samples agree on no value; as many have each of: {named}.",
        tuple(group[0].value for group in best),
    )


def _samples(group: Sequence[Candidate]) -> str:
    return f"sample{'' if len(group) == 1 else 's'} {', '.join(str(one.sample) for one in group)}"


def _agreeing(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the candidates in groups of the same value, in the order of the first of each."""
    groups: list[list[Candidate]] = []
    for one in candidates:
        own = next((group for group in groups if _is_same(one.value, group[0].value)), None)
        if own is None:
            groups.append([one])
        else:
            own.append(one)
    return groups


def _is_same(one: Any, other: Any) -> bool:
    try:
        return same_value(one, other)
    except Exception:  # noqa: BLE001 - values that cannot be compared are none that agree
        return False
