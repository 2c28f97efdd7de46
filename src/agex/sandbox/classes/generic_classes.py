"""Aliases such as ``G[int]``, whose calls write to no host object.

A call of an alias writes to its result: ``G[int]().__orig_class__`` is the alias. A guest class decides what
calling it returns, and that may be any host object; the same goes for ``type(x)``.
"""

from __future__ import annotations

import contextlib
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import asking

__all__ = ["MAKER", "Alias", "install", "is_plain", "keep_from"]


class Alias(types.GenericAlias):
    """``types.GenericAlias`` that writes ``__orig_class__`` to guest objects only."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        origin: Any = self.__origin__
        return _noted(self, origin(*args, **kwargs), (AttributeError, TypeError))

    def __getitem__(self, item: Any) -> Any:
        plain: Any = super().__getitem__(item)
        return Alias(plain.__origin__, plain.__args__)

    def __iter__(self) -> Iterator[Any]:  # the starred one would be of the real class
        raise TypeError(f"{self!r} cannot be unpacked; write typing.Unpack[...]")


MAKER: Any = classmethod(Alias)
"""The ``__class_getitem__`` of guest classes, in place of an inherited one."""


def _noted(alias: Any, made: Any, ignored: tuple[type[BaseException], ...]) -> Any:
    if provenance.is_guest_class(type(made)):
        with contextlib.suppress(*ignored):
            made.__orig_class__ = alias
    return made


def keep_from(class_: type) -> None:
    """Let a guest class that inherits the interpreter's ``__class_getitem__`` make our aliases."""
    if is_plain(class_):
        type.__setattr__(class_, "__class_getitem__", MAKER)


def is_plain(class_: type, name: str = "__class_getitem__") -> bool:
    """Return whether a class makes aliases of the kind of the interpreter."""
    part = next((part for part in mro_of(class_) if name in namespace_of(part)), object)
    maker = namespace_of(part).get(name)
    if type(maker) is types.ClassMethodDescriptorType:
        return part is not typing.Generic  # which is written in C from Python 3.12 on
    behind = maker.__func__ if type(maker) is classmethod else None
    return isinstance(behind, type) and issubclass(behind, types.GenericAlias)


_ours: set[Any] = set()
"""The methods that stand in the place of real ones."""


def install() -> None:
    """Patch the aliases of ``typing`` to do the same in guest code.

    A library may have put a method of its own into one of the classes, as pandera does to ``_GenericAlias``:
    that is patched as well.
    """
    classes: list[Any] = [typing._BaseGenericAlias]  # type: ignore[attr-defined]
    while classes:
        alias = classes.pop()
        classes += type.__subclasses__(alias)
        own = namespace_of(alias).get("__call__")
        if own is not None and own not in _ours:
            alias.__call__ = _guarded(own)


def _guarded(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if asking() is None or not self._inst:
            return real(self, *args, **kwargs)
        return _noted(self, self.__origin__(*args, **kwargs), _IGNORED)

    _ours.add(call)
    return call


_IGNORED = (AttributeError,) if sys.version_info < (3, 13) else (Exception,)
"""Errors that the real method ignores."""
