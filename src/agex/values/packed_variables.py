"""Packed variables: bytes that another process made, kept as they are and decoded on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agex.errors import StateCorrupt
from agex.values.base.allowlist import Allow
from agex.values.base.group import Group
from agex.values.base.guest_code import GuestCode
from agex.values.base.placeholders import NotKept
from agex.values.code.outline import Sketch
from agex.values.decoder import decode
from agex.values.encoder import encode

__all__ = ["Packed", "copied", "frozen", "opened", "packed_groups", "sketched"]


class Packed:
    """A variable of a group that another process encoded."""

    __slots__ = ("group", "name")

    def __init__(self, group: Group, name: str) -> None:
        self.group = group
        self.name = name

    def __repr__(self) -> str:
        return f"<variable {self.name} of a worker>"


def opened(variables: Mapping[str, Any], *, allow: Allow, guest: GuestCode | None) -> dict[str, Any]:
    """Return variables with the packed ones decoded; those that share objects still share them.

    Functions and classes from another level of isolation come as `NotKept`, see `decode`.

    Raises:
        StateCorrupt: the bytes are not what `encode` makes.
    """
    return _opened(variables, lambda group: decode(_own(group), allow=allow, guest=guest))


def sketched(variables: Mapping[str, Any], *, allow: Allow) -> dict[str, Any]:
    """Return variables for display: no guest code runs, and a placeholder stands for an unreadable one."""
    sketch = Sketch()

    def read(group: Group) -> dict[str, Any]:
        try:
            return decode(_own(group), allow=allow, guest=sketch)
        except StateCorrupt as error:
            return {name: NotKept(name, "unreadable", str(error)) for name in group.names}

    return _opened(variables, read)


def _opened(variables: Mapping[str, Any], read: Callable[[Group], dict[str, Any]]) -> dict[str, Any]:
    """Return variables with the packed ones taken from their groups, each of which is read once."""
    decoded: dict[int, dict[str, Any]] = {}
    found: dict[str, Any] = {}
    for name, value in variables.items():
        if type(value) is not Packed:
            found[name] = value
            continue
        group = value.group
        if id(group) not in decoded:
            decoded[id(group)] = read(group)
        found[name] = decoded[id(group)][value.name]
    return found


def _own(group: Group) -> Group:
    """Return a group whose buffers are not shared: decoded arrays are written to."""
    buffers = tuple([memoryview(bytearray(part)) for part in group.buffers])
    return Group(
        names=group.names,
        stream=group.stream,
        buffers=buffers,
        lost=group.lost,
        has_code=group.has_code,
        origin=group.origin,
    )


def packed_groups(variables: Mapping[str, Any]) -> Iterator[Group]:
    """Return the groups of packed variables that are there as a whole, each once."""
    seen: set[int] = set()
    for value in variables.values():
        if type(value) is Packed and id(value.group) not in seen:
            seen.add(id(value.group))
            if all(_is_of(variables.get(name), value.group, name) for name in value.group.names):
                yield value.group


def _is_of(value: Any, group: Group, name: str) -> bool:
    return type(value) is Packed and value.group is group and value.name == name


def copied(variables: Mapping[str, Any], *, allow: Allow, guest: GuestCode | None) -> dict[str, Any]:
    """Return copies of variables, of which those that share objects still share them.

    A variable with a part that cannot be kept, and those it shares objects with, are returned as they are;
    so are packed ones, which nobody changes.
    """
    found = dict(variables)
    live = {name: value for name, value in variables.items() if type(value) is not Packed}
    for group in encode(live, allow=allow, guest=guest):
        if not group.lost:
            found.update(decode(_own(group), allow=allow, guest=guest))
    return found


def frozen(variables: Mapping[str, Any], *, allow: Allow, guest: GuestCode) -> dict[str, Any]:
    """Freeze the captured values of guest code as they are now.

    Functions and classes, and every variable that shares objects with them (instances do, with their
    class), come back made anew: their captured values are copies, and assigning to ``factor`` later does
    not change a function that read it. All other variables are returned as they are.

    Args:
        variables: the values, by name.
        allow: classes whose instances can be made again; others in those groups become `NotKept`.
        guest: guest code.
    """
    found = dict(variables)
    for group in encode(variables, allow=allow, guest=guest):
        if group.has_code:
            own = tuple([memoryview(bytearray(part)) for part in group.buffers])
            copied = Group(names=group.names, stream=group.stream, buffers=own)
            found.update(decode(copied, allow=allow, guest=guest))
    return found
