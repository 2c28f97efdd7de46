"""``array`` as guests get it."""

from __future__ import annotations

import array
from typing import Any

from agex._interpreter.typed_array import Between, TypedArray
from agex.sandbox.classes import stand_ins as instead

__all__ = ["ARRAY"]

instead.note_ours(Between)
instead.stands_for(array.array, TypedArray)

ARRAY: dict[str, Any] = {"array": TypedArray, "ArrayType": TypedArray}
"""The members of ``array`` that are guarded."""
