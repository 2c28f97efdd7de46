"""Where a class is at home: the library, and its name there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from agex._interpreter.type_slots import module_of, mro_of, qualname_of
from agex.sandbox.runtime import provenance as origins

__all__ = ["Guard", "homes"]

Guard: TypeAlias = Callable[..., Any]
"""Called as ``guard(real, *args, **kwargs)``; checks the arguments and calls *real*, or raises."""


def homes(class_: type) -> Iterator[tuple[str, str]]:
    """Give, for a class and its bases, the library and the class's name in it."""
    # By name, not by identity: no library has to be imported, and a class keeps its name when it moves.
    for base in mro_of(class_):
        if origins.is_guest_class(base):  # it may say what it likes
            continue
        module = module_of(base)
        if type(module) is str:
            yield module.partition(".")[0].lstrip("_"), qualname_of(base)
