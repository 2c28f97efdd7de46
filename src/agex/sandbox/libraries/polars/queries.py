"""SQL over frames of polars.

A query can read files (``read_csv('...')``), which compiled code opens. And ``polars.sql`` takes frames from
the variables of all code that called it. Here a query names no such function, and sees the variables of guest
code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.patches.stdlib_caches import exact
from agex.sandbox.runtime.context import asking, frames_of

if TYPE_CHECKING:
    from typing import Self

__all__ = ["SQLContext", "checked", "of_variables"]

_FILES = re.compile(
    r"\b(?:read|scan)_\w|\bcopy\b|\battach\b|\bcreate\s+external\b|[uU]&|\\|://", re.IGNORECASE
)
"""Functions that open files, and what could spell one otherwise."""


def _text(query: Any) -> str:
    found = exact(query)
    if type(found) is not str:
        raise SandboxTypeError(f"a query is a str, not {type(found).__name__}")
    if (match := _FILES.search(found)) is not None:
        raise SandboxError(
            f"a query reads frames here, no files: {match[0]!r} is not available; use pl.read_csv(path)"
        )
    return found


def checked(real: Callable[..., Any], query: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the query of a frame's ``sql``."""
    return real(_text(query), *args, **kwargs)


class SQLContext:
    """Frames with names, for queries."""

    def __init__(
        self, frames: Any = None, *, register_globals: bool = False, eager: bool = False, **named: Any
    ) -> None:
        pl: Any = import_module("polars")

        given = {**_variables(), **(frames or {})} if register_globals else dict(frames or {})
        self.__real = pl.SQLContext({**given, **named}, eager=bool(eager))

    def execute(self, query: str, *, eager: bool | None = None) -> Any:
        """Run a query."""
        return self.__real.execute(_text(query), eager=eager)

    def register(self, name: str, frame: Any) -> SQLContext:
        """Register a frame under a name."""
        self.__real.register(exact(name), frame)
        return self

    def register_many(self, frames: Any = None, **named: Any) -> SQLContext:
        """Register several frames under their names."""
        for name, frame in {**(frames or {}), **named}.items():
            self.register(name, frame)
        return self

    def register_globals(self) -> SQLContext:
        """Register the frames among the variables."""
        return self.register_many(_variables())

    def unregister(self, names: Any) -> SQLContext:
        """Take names away."""
        self.__real.unregister([*map(exact, [names] if isinstance(names, str) else names)])
        return self

    def tables(self) -> list[str]:
        """Return the names."""
        return list(self.__real.tables())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.unregister(self.tables())


def of_variables(query: str, *, eager: bool = False) -> Any:
    """Run a query over the frames among the variables of guest code, as ``polars.sql`` does."""
    return SQLContext(_variables()).execute(query, eager=bool(eager))


def _variables() -> dict[str, Any]:
    """Return the frames among the variables of the guest code that asks, the innermost first."""
    pl: Any = import_module("polars")

    pandas: Any = sys.modules.get("pandas")
    kinds: tuple[type, ...] = (pl.DataFrame, pl.LazyFrame, pl.Series)
    if pandas is not None:
        kinds = (*kinds, pandas.DataFrame, pandas.Series)
    guards = asking()
    found: dict[str, Any] = {}
    for frame in frames_of(guards) if guards is not None else ():
        for names in (frame.f_locals, frame.f_globals):
            for name, value in list(names.items()):
                if type(value) in kinds:
                    found.setdefault(name, value)
    return found
