"""Codec of values between host and worker, over `agex.values`: never a pickle that calls named objects.

An object without a form of its own (a function, a live object) stays where it is. A *name* takes its place,
which the other end turns into a proxy:

``g:{...}``     a guest function, by number, with its signature
``h:{...}``     a host object, by number, with what can be done with it
``n:NAME``      an object that the policy grants under a name
``m:NAME``      a module that guest code may import
anything else   a granted module, class or builtin, see `agex.sandbox.host_names`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from agex import values
from agex.errors import StateCorrupt
from agex.isolation.wire.error_codec import ProtocolError

__all__ = [
    "CannotCross",
    "Packing",
    "is_kept",
    "pack",
    "pack_groups",
    "session_groups",
    "session_header",
    "unpack",
    "unpack_groups",
]

_MOST_GROUPS = 10_000


class CannotCross(TypeError):
    """A value has a part that can neither be copied to the other end nor used from there."""


@dataclass(frozen=True)
class Packing:
    """Values as a header and parts of a message."""

    header: Any
    parts: Sequence[bytes | memoryview] = ()


def pack(value: Any, what: str, *, allow: values.Allow, guest: values.GuestCode) -> Packing:
    """Encode one value.

    Args:
        value: any.
        what: its name in an error.
        allow: classes whose instances cross by their fields.
        guest: names objects that do not cross.

    Raises:
        CannotCross: with the path to each part that cannot, and why.
    """
    (group,) = values.encode({_NAME: value}, allow=allow, guest=guest)
    if group.lost:
        raise CannotCross("; ".join(_reasons(group.lost[_NAME], what)))
    return Packing(1 + len(group.buffers), [group.stream, *group.buffers])


_NAME = "value"


def _reasons(lost: Iterable[values.Lost], what: str) -> list[str]:
    return [
        f"{what}{one.path.removeprefix(_NAME)} ({one.type}) cannot leave the place where it is: {one.reason}"
        for one in list(lost)[:5]
    ]


def unpack(
    header: Any,
    parts: Sequence[memoryview],
    *,
    allow: values.Allow,
    guest: values.GuestCode | None,
    origin: str = "",
) -> Any:
    """Decode one value.

    Args:
        header: from `pack`.
        parts: from `pack`.
        allow: classes whose instances may be made.
        guest: finds named objects.
        origin: the level that it comes from, where that is not to be trusted.

    Raises:
        ProtocolError: it is none.
    """
    if type(header) is not int or header != len(parts) or not parts:
        raise ProtocolError("a value does not have the parts that it says")
    group = values.Group(names=(_NAME,), stream=bytes(parts[0]), buffers=tuple(parts[1:]), origin=origin)
    try:
        return values.decode(group, allow=allow, guest=guest)[_NAME]
    except StateCorrupt as error:
        raise ProtocolError(str(error)) from error


def pack_groups(groups: Iterable[values.Group]) -> Packing:
    """Return groups as they are."""
    header: list[Any] = []
    parts: list[bytes | memoryview] = []
    for group in groups:
        reasons = {
            name: [[one.path, one.type, one.reason] for one in lost] for name, lost in group.lost.items()
        }
        header.append([list(group.names), 1 + len(group.buffers), group.has_code, group.origin, reasons])
        parts += [group.stream, *group.buffers]
    return Packing(header, parts)


def unpack_groups(header: Any, parts: Sequence[memoryview]) -> list[values.Group]:
    """Return groups as they were sent, without decoding them.

    Raises:
        ProtocolError: there are none.
    """
    if type(header) is not list or len(header) > _MOST_GROUPS:
        raise ProtocolError("variables are described wrongly")
    found: list[values.Group] = []
    at = 0
    for one in header:
        names, count, has_code, origin, reasons = _described(one)
        if at + count > len(parts):
            raise ProtocolError("variables do not have the parts that they say")
        own = parts[at : at + count]
        at += count
        lost = {
            name: tuple(values.Lost(path=p, type=t, reason=r) for p, t, r in each)
            for name, each in reasons.items()
        }
        found.append(
            values.Group(
                names=names,
                stream=bytes(own[0]),
                buffers=tuple(own[1:]),
                lost=lost,
                has_code=has_code,
                origin=origin,
            )
        )
    if at != len(parts):
        raise ProtocolError("variables are followed by other bytes")
    return found


def _described(one: Any) -> tuple[tuple[str, ...], int, bool, str, Mapping[str, list[list[str]]]]:
    if type(one) is not list or len(one) != 5:
        raise ProtocolError("a variable is described wrongly")
    names, count, has_code, origin, reasons = one
    if not (
        type(names) is list
        and names
        and all(type(name) is str and name.isidentifier() and len(name) <= 500 for name in names)
        and len(set(names)) == len(names)
        and type(count) is int
        and count >= 1
        and type(has_code) is bool
        and type(origin) is str
        and type(reasons) is dict
        and all(_is_reasons(each) for each in reasons.values())
    ):
        raise ProtocolError("a variable is described wrongly")
    return tuple(names), count, has_code, origin, reasons


def _is_reasons(found: Any) -> bool:
    return type(found) is list and all(
        type(one) is list and len(one) == 3 and all(type(text) is str for text in one) for one in found
    )


def session_header(
    given: Mapping[str, Any], bound: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header that describes names to a worker, and their values, task inputs one by one.

    Args:
        given: names and their values.
        bound: the bound names among them, and others.
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


def session_groups(
    plain: Mapping[str, Any], level: str, *, allow: values.Allow, guest: values.GuestCode
) -> list[values.Group]:
    """Return values as groups; those of a worker of this level go back unchanged.

    Code from another level stays out: what ran behind a boundary does not run where there is none.

    Raises:
        CannotCross: one can neither be copied nor used from there.
    """
    whole = [group for group in values.packed_groups(plain) if group.origin in {"", level}]
    rest = {name: plain[name] for name in plain.keys() - {n for g in whole for n in g.names}}
    rest = values.opened(rest, allow=allow, guest=_OfAnotherSession(guest))
    groups = values.encode(rest, allow=allow, guest=guest) if rest else []
    for group in groups:
        for lost in group.lost.values():
            raise CannotCross(
                f"{lost[0].path} ({lost[0].type}) cannot be used at isolation={level!r}: {lost[0].reason}"
            )
    return [*whole, *groups]


class _OfAnotherSession(values.ForwardedCode):
    """Guest code that was kept by another session, which may have been given other objects."""

    def host_object(self, name: str) -> Any:
        try:
            return super().host_object(name)
        except ProtocolError as error:
            raise KeyError(name) from error


def is_kept(value: Any) -> bool:
    """Return whether a bound value is returned: a dict is, with the items that guest code put in."""
    return type(value) is dict or type(value) is values.Packed
