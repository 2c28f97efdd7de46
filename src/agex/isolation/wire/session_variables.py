"""Variables and bound names of a session, as its worker is given them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from agex import values
from agex.isolation.wire.codec import CannotCross

__all__ = ["described", "encoded", "is_kept"]


def described(given: Mapping[str, Any], bound: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a worker is told of names, and their values, the inputs of the task one by one.

    Args:
        given: names and their values.
        bound: those of them, and others, that are no variables of the guest's own.
    """
    records = {
        name: vars(value)
        for name, value in given.items()
        if type(value) is not dict and isinstance(value, SimpleNamespace)
    }
    plain = {name: value for name, value in given.items() if name not in records}
    for fields in records.values():
        plain.update({name: value for name, value in fields.items() if name not in plain})
    header = {
        "bound": [name for name in plain if name in bound],
        "kept": [name for name in plain if name in bound and is_kept(bound[name])],
        "records": {name: list(fields) for name, fields in records.items()},
    }
    return header, plain


def encoded(
    plain: Mapping[str, Any], level: str, *, allow: values.Allow, guest: values.GuestCode
) -> list[values.Group]:
    """Return values as groups; what a worker gave is given as it came.

    Raises:
        CannotCross: one can neither be copied nor used from there.
    """
    whole = list(values.packed_groups(plain))
    rest = {name: plain[name] for name in plain.keys() - {n for g in whole for n in g.names}}
    rest = values.opened(rest, allow=allow, guest=guest)
    groups = values.encode(rest, allow=allow, guest=guest) if rest else []
    for group in groups:
        for lost in group.lost.values():
            raise CannotCross(
                f"{lost[0].path} ({lost[0].type}) cannot be used at isolation={level!r}: {lost[0].reason}"
            )
    return [*whole, *groups]


def is_kept(value: Any) -> bool:
    """Tell whether a bound value is given back: what the guest puts into a dict is."""
    return type(value) is dict or type(value) is values.Packed
