"""Variables as a later task finds them, without a store in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agex.values.base.allowlist import Allow
from agex.values.base.group import Group
from agex.values.base.guest_code import GuestCode
from agex.values.decoder import decode
from agex.values.encoder import encode

__all__ = ["frozen"]


def frozen(variables: Mapping[str, Any], *, allow: Allow, guest: GuestCode) -> dict[str, Any]:
    """Give code of the guest the captured values that it has now, for good.

    Functions and classes, and every variable that shares objects with them (instances do, with their
    class), come back made anew: what they captured is a copy, and assigning to ``factor`` later does
    not change a function that read it. All other variables are returned as they are.

    Args:
        variables: the values, by name.
        allow: whose instances can be made again; others in those groups become `NotKept`.
        guest: the guest's code.
    """
    found = dict(variables)
    for group in encode(variables, allow=allow, guest=guest):
        if group.has_code:
            own = tuple([memoryview(bytearray(part)) for part in group.buffers])
            copied = Group(names=group.names, stream=group.stream, buffers=own)
            found.update(decode(copied, allow=allow, guest=guest))
    return found
