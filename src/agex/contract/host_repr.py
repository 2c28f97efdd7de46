"""The repr of host objects in a preview, under a limit of time.

A host object whose class defines a repr is shown by it. Objects of the agent's classes and objects that
hold one are not asked: their code runs only under the limits of a run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.contract.real_types import class_attribute, is_subclass, own_attributes, real_iter, real_len
from agex.host_texts import HostTexts

__all__ = ["HostTexts", "holds_guests", "own_repr"]

_SHOWN_OTHERWISE = sys.stdlib_module_names | {"numpy", "pandas", "pydantic"}
"""Packages whose objects a preview shows by what it knows of them: without a thread, and parts in short."""
_LEVELS = 4
"""A repr seldom shows more levels of what an object holds."""
_MOST_PARTS = 5_000
_MOST_ITEMS = 200_000
"""Of one collection, which are looked at in some milliseconds; a larger one counts as too many parts."""
_ATOMS = (int, str, float, bool, bytes, type(None))
_ARGS = vars(BaseException)["args"].__get__
_CONTAINERS = (dict, list, tuple, set, frozenset)


def own_repr(value: Any, texts: HostTexts) -> str | None:
    """Return the repr that the class of *value* defines; None where it defines none or is not asked."""
    kind = type(value)
    written = class_attribute(kind, "__repr__")
    if type(written) is not FunctionType:  # of a compiled one, the interpreter's lock may not be had back
        return None
    package = str(written.__globals__.get("__name__")).partition(".")[0]
    if package in _SHOWN_OTHERWISE or _is_guests(written) or holds_guests(value):
        return None
    return texts.of(value)


def holds_guests(value: Any) -> bool:
    """Return whether an object is guest-made or leads to one; True also where it has too many parts."""
    seen: set[int] = set()
    level = [value]
    for _ in range(_LEVELS):
        found: list[Any] = []
        for each in level:
            if _is_guests(each):
                return True
            seen.add(id(each))
            found += islice(_parts(each), _MOST_PARTS + 1)
            if len(found) + len(seen) > _MOST_PARTS:
                return True
        level = [each for each in found if id(each) not in seen]
    return any(map(_is_guests, level))


def _is_guests(value: Any) -> bool:
    from agex.sandbox.runtime import (
        provenance as origins,  # later: this room is also there where nothing is run
    )

    if type(value) is MethodType:
        value = value.__func__
    if type(value) is FunctionType:
        return origins.source_of(value.__code__) is not None
    kinds = [type(value), value] if is_subclass(type(value), type) else [type(value)]
    return any(origins.is_guest_class(part) for kind in kinds for part in mro_of(kind))


def _parts(value: Any) -> Iterator[Any]:
    """Iterate over what an object holds that is not plain data."""
    kind = type(value)
    if kind in _ATOMS or kind is FunctionType or kind is ModuleType or is_subclass(kind, type):
        return
    held: list[Any] = list(own_attributes(value).values())
    for cls in mro_of(kind):
        for name, slot in namespace_of(cls).items():
            if type(slot) is MemberDescriptorType:
                held += _slot(slot, value, name)
    if is_subclass(kind, BaseException):
        held.append(_ARGS(value))
    yield from _not_atoms(held)
    if any(is_subclass(kind, each) for each in _CONTAINERS):
        if real_len(value) > _MOST_ITEMS:
            yield from range(_MOST_PARTS + 1)  # too many parts, without a look at them
            return
        yield from _not_atoms(real_iter(value))
        if is_subclass(kind, dict):
            yield from _not_atoms(dict.values(value))


def _not_atoms(values: Iterable[Any]) -> Iterator[Any]:
    return (each for each in values if type(each) not in _ATOMS)


def _slot(slot: MemberDescriptorType, value: Any, name: str) -> list[Any]:
    try:
        return [slot.__get__(value)]
    except AttributeError:  # nothing is in it
        return []
