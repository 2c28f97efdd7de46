"""The generator that ``np.random.seed`` seeds is the session's own; what draws without one draws from that.

The host's generator stands still, and ``np.random.seed(1)`` gives the numbers that it always gives.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from agex.errors import SandboxImportError
from agex.sandbox.patches.replacement import replace_everywhere
from agex.sandbox.runtime.context import asking

__all__ = ["draw_from_own", "hold_own", "of_session"]


def of_session() -> Any:
    """Give the generator of the session that asks; None where none does, or where it has no numpy."""
    guards = asking()
    if guards is None:
        return None
    try:
        numpy = guards.import_("numpy")
    except SandboxImportError:
        return None
    functions = getattr(numpy, "random", None)
    return getattr(getattr(functions, "random_sample", None), "__self__", None)


def draw_from_own(home: str, name: str) -> None:
    """Have a function that makes a generator of what it is given give the session's for None."""
    replace_everywhere(home, name, _given)


def _given(real: Any) -> Any:
    def given(*args: Any, **kwargs: Any) -> Any:
        asked = (*args, *kwargs.values())
        own = of_session() if not asked or asked[0] is None else None
        return real(*args, **kwargs) if own is None else own

    return given


def hold_own(class_: Any, name: str) -> None:
    """Have objects draw from the session's generator that hold the process's, in their attribute *name*."""
    if name in vars(class_):
        return
    process: Any = import_module("numpy.random.mtrand")._rand

    def get(self: Any) -> Any:
        held = vars(self)[name]
        own = of_session() if held is process else None
        return held if own is None else own

    def put(self: Any, generator: Any) -> None:
        # What an object of the process is given back after it drew from another is the process's.
        vars(self)[name] = process if generator is of_session() else generator

    setattr(class_, name, property(get, put))
