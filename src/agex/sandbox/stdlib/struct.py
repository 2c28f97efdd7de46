"""``struct`` and ``array`` for guest code: exact formats, because both follow them in C.

``struct`` caches formats for the whole process. A subclass of ``Struct`` could begin anew with another format
while C code writes what the first one says.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Callable
from typing import Any

from agex._interpreter.typed_array import Between, TypedArray
from agex.sandbox.classes import stand_ins
from agex.sandbox.patches.stdlib_caches import exact, stand_in

__all__ = ["ARRAY", "STRUCT"]

stand_ins.note_ours(Between)
stand_ins.stands_for(array.array, TypedArray)

ARRAY: dict[str, Any] = {"array": TypedArray, "ArrayType": TypedArray}
"""The members of ``array`` that are guarded."""


def _of_exact_format(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(format: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: A002 - its name there
        return real(exact(format), *args, **kwargs)

    return call


STRUCT: dict[str, Any] = {
    name: _of_exact_format(getattr(struct, name))
    for name in ("calcsize", "iter_unpack", "pack", "pack_into", "unpack", "unpack_from")
}
"""The members of ``struct``."""


def _struct(format: Any) -> Any:  # noqa: A002 - its name there
    """Do what ``struct.Struct`` does."""
    return struct.Struct(exact(format))


STRUCT["Struct"] = stand_in(
    struct.Struct, _struct, __new__=lambda cls, *args, **kwargs: _struct(*args, **kwargs)
)
