"""What ``copy`` makes anew: an object of the class of the copied one, and no other.

A copy is made by ``__new__`` and filled with what ``__getstate__`` says, names and all, and both may be
the guest's: an object, a class or a function of the host's that ``__new__`` gives would be written to. So
the function of ``copy`` that does it is replaced, once a process, by one that looks at what is made of
an object of a guest's, also where it is the host that copies, and changes nothing for others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from agex.errors import SandboxTypeError
from agex.sandbox import origins

__all__ = ["install"]


def install() -> None:
    """Put the check in place, once a process."""
    _copy._reconstruct = _reconstruct


_copy: Any = copy
_real: Callable[..., Any] = _copy._reconstruct


def _reconstruct(x: Any, memo: Any, func: Callable[..., Any], *parts: Any, **options: Any) -> Any:
    class_ = type(x)
    if not origins.is_guest_class(class_):
        return _real(x, memo, func, *parts, **options)

    def make(*args: Any) -> Any:
        made = func(*args)
        if type(made) is not class_:
            raise SandboxTypeError(
                f"the copy of an object is of its class, and __new__() of {class_.__name__} gave another; "
                "define __copy__() and __deepcopy__()"
            )
        return made

    return _real(x, memo, make, *parts, **options)
