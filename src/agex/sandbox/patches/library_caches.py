"""Exact keys for the caches that libraries keep for the whole process.

A guest class can define its own ``__eq__``. As a key it would match another one, and the host would find a
wrong time zone, marker or set of integration weights.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from agex._interpreter.type_slots import namespace_of
from agex.sandbox.classes import lru_caches
from agex.sandbox.patches import stdlib_caches
from agex.sandbox.patches.replacement import is_stand_in, replace
from agex.sandbox.runtime import provenance

__all__ = ["hold", "hold_memoized", "hold_of_class", "hold_zones"]

_PLAIN = frozenset({str, int, float, type(None)})


def hold(owner: Any, *names: str) -> None:
    """Pass exact texts and numbers to functions that cache their results, once a process."""
    for name in names:
        replace(owner, name, _exactly)


def hold_of_class(class_: Any, *names: str) -> None:
    """Do the same for functions of a class that take no object of it."""
    for name in names:
        real = getattr(class_, name, None)
        if real is not None and not is_stand_in(real):
            replace(class_, name, _exactly)
            setattr(class_, name, staticmethod(namespace_of(class_)[name]))


def hold_zones() -> None:
    """Pass exact names to the cache of time zones in ``dateutil``."""
    with suppress(ImportError):
        hold(type(import_module("dateutil.tz").gettz), "__call__")


def _exactly(real: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return real(*map(_key, args), **{name: _key(value) for name, value in kwargs.items()})

    return call


def _key(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    value = stdlib_caches.exact(value)
    if provenance.is_guest_class(type(value)):
        raise TypeError(f"a str or a number is needed, not {type(value).__name__}")
    return value


def hold_memoized(packages: Iterable[str]) -> None:
    """Keep guest objects out of the memoized functions of libraries, in modules loaded since then."""
    roots = frozenset(each.partition(".")[0] for each in packages)
    # It is called for each module that a policy copies, and a process may have thousands.
    loaded = len(sys.modules), next(reversed(sys.modules), "")
    if _looked_at.get(roots) == loaded:
        return
    is_complete = True
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in roots or _seen.get(name) is module:
            continue
        if not _is_loaded(module):
            is_complete = is_complete and type(module) is not types.ModuleType  # it is being loaded
            continue
        _seen[name] = module
        for owner, member, value in _members(module):
            made, behind = _standing_for(value), type(value)
            with suppress(AttributeError, TypeError):  # a class that cannot be written to
                setattr(owner, member, made if behind not in _METHODS else behind(made))
    if is_complete:
        _looked_at[roots] = loaded


_looked_at: dict[frozenset[str], tuple[int, str]] = {}
"""By packages, the count of loaded modules and the last of them, when all of theirs had been looked at."""
_METHODS: tuple[Any, ...] = (staticmethod, classmethod)
_seen: dict[str, types.ModuleType] = {}
_made: dict[int, tuple[Any, Any]] = {}


def _is_loaded(module: Any) -> bool:
    """Return whether a module is loaded completely."""
    return type(module) is types.ModuleType and not getattr(module.__spec__, "_initializing", False)


def _members(module: types.ModuleType) -> Iterator[tuple[Any, str, Any]]:
    """Yield the memoized functions of a module and of its classes, with their owners and names."""
    for name, value in list(vars(module).items()):
        if lru_caches.is_memoized(value):
            yield module, name, value
        elif issubclass(type(value), type) and value.__module__ == module.__name__:
            for member, held in list(namespace_of(value).items()):
                if lru_caches.is_memoized(held.__func__ if type(held) in _METHODS else held):
                    yield value, member, held


def _standing_for(value: Any) -> Any:
    real = value.__func__ if type(value) in _METHODS else value
    if id(real) not in _made:
        _made[id(real)] = real, lru_caches.of_plain(real)
    return _made[id(real)][1]
