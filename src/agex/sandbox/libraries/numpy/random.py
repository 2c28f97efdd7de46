"""Random numbers of numpy for guest code: ``np.random`` has a generator for each session.

Functions that draw without a generator use that of the session. The host's generator does not move, and
``np.random.seed(1)`` gives the usual numbers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from agex.errors import SandboxImportError
from agex.sandbox.patches.replacement import replace_everywhere
from agex.sandbox.runtime.context import asking

__all__ = ["draw_from_own", "hold_own", "of_session"]


def of_session() -> Any:
    """Return the generator of the session that asks; None if there is no session, or none with numpy."""
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
    """Make a function that turns its argument into a generator return the session's for None."""
    replace_everywhere(home, name, _given)


def _given(real: Any) -> Any:
    def given(*args: Any, **kwargs: Any) -> Any:
        asked = (*args, *kwargs.values())
        own = of_session() if not asked or asked[0] is None else None
        return real(*args, **kwargs) if own is None else own

    return given


def hold_own(class_: Any, name: str) -> None:
    """Make objects that hold the generator of the process in *name* draw from the session's."""
    if name in vars(class_):
        return
    process: Any = import_module("numpy.random.mtrand")._rand

    def get(self: Any) -> Any:
        held = vars(self)[name]
        own = of_session() if held is process else None
        return held if own is None else own

    def put(self: Any, generator: Any) -> None:
        # A host object that drew from the session's generator gets that of the process back.
        vars(self)[name] = process if generator is of_session() else generator

    setattr(class_, name, property(get, put))
