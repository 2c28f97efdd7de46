"""Room on the stack for what must not fail half way."""

from __future__ import annotations

import operator
import sys
from typing import Any

__all__ = ["require_room"]

_LEVELS = 28
"""More than twice what beginning or ending a run takes at most."""


def require_room() -> None:
    """Raise RecursionError here, where nothing is changed yet, rather than in the midst of the work.

    What ends the work begins where this was called, so there is as much room for it.
    """
    operator.eq(_LEFT, _RIGHT)  # counts its levels as calls of C code, in a tenth of their time
    if _COUNTS_APART:
        _call(_LEVELS)


_COUNTS_APART = sys.version_info >= (3, 12)
"""Whether calls of Python code are counted apart from those of C code."""


def _call(levels: int) -> None:
    if levels:
        _call(levels - 1)


def _nested(levels: int) -> Any:
    return (_nested(levels - 1),) if levels else ()


_LEFT, _RIGHT = _nested(_LEVELS), _nested(_LEVELS)
"""Equal and not the same at any level, so that a comparison goes through all of them."""
