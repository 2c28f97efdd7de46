"""The end of a program by ``SystemExit``, as ``sys.exit()`` raises it."""

from __future__ import annotations

from collections.abc import Callable

from agex._interpreter.type_slots import name_of
from agex.errors import SandboxError

__all__ = ["require_good_end"]

_CODE: Callable[[BaseException], object] = vars(SystemExit)["code"].__get__


def require_good_end(ending: SystemExit) -> None:
    """Return where a program ended without a status, or with 0.

    Raises:
        SandboxError: it ended with another; the exception itself is its cause.
    """
    code = _CODE(ending)
    if code is None or (type(code) is int and code == 0):
        return
    said = repr(code) if type(code) in {int, str} else f"a {name_of(type(code))}"
    raise SandboxError(
        f"SystemExit: the program ended itself by sys.exit({said}); sys.exit() is a normal end"
    ) from ending
