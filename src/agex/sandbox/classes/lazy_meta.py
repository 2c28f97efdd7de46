"""The metaclass of the iterator types that guest code gets for ``map``, ``zip``, ``itertools.chain``."""

from __future__ import annotations

from typing import Any

from agex.errors import SandboxTypeError

__all__ = ["REAL_OF", "LazyMeta"]


class LazyMeta(type):
    """The metaclass of the guarded iterator types, which have no subclasses."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> LazyMeta:
        if bases and isinstance(bases[0], LazyMeta):
            raise SandboxTypeError(f"{bases[0].__name__} cannot be subclassed here; write a generator")
        return super().__new__(cls, name, bases, namespace)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, REAL_OF[cls])


REAL_OF: dict[type, type] = {}
"""The iterator type of the interpreter that each stands for. No attribute: guest code could read it."""
