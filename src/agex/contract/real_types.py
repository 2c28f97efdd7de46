"""The real type and contents of a value, read without running its own code.

A guest object may lie through ``__class__``, ``__eq__``, ``__len__`` or ``__iter__``, so
every question here is answered from ``type(value)`` and the tables of the builtin types.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections import deque
from collections.abc import Iterator
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from agex._interpreter.type_slots import module_of, mro_of, name_of, namespace_of

__all__ = [
    "class_attribute",
    "class_name",
    "is_a",
    "is_known",
    "is_subclass",
    "numpy_number",
    "own_attributes",
    "real_attribute",
    "real_items",
    "real_iter",
    "real_len",
]

_derives = type.__subclasscheck__


def is_subclass(kind: type, cls: type) -> bool:
    """Return whether *cls* is in the real method resolution order of *kind*."""
    # Not `issubclass`, which asks the metaclass of *cls*.
    return kind is cls or _derives(cls, kind)


def is_a(value: object, cls: type) -> bool:
    """Return whether *value* is an instance of *cls*, ignoring its ``__class__``.

    A class with its own idea of instances (an ABC, a metaclass) is asked about the type.
    """
    kind = type(value)
    if is_subclass(kind, cls):
        return True
    meta = type(cls)
    if meta is type:
        return False
    if meta.__instancecheck__ not in (type.__instancecheck__, ABCMeta.__instancecheck__):
        return isinstance(value, cls)
    return meta.__subclasscheck__ is not type.__subclasscheck__ and issubclass(kind, cls)


def is_known(kind: type, *bases: type) -> bool:
    """Return whether a class is one of these, or derives from one and is what its module calls by its name.

    A guest subclass is in no host module, whichever name it claims: its properties are guest code.
    """
    if not any(is_subclass(kind, base) for base in bases):
        return False
    module = module_of(kind)
    home = sys.modules.get(module) if type(module) is str else None
    return kind in bases or getattr(home, name_of(kind), None) is kind


def numpy_number(value: object) -> bool | int | float | complex | None:
    """Return the Python number of a numpy scalar; None for everything else."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not is_subclass(type(value), numpy.generic):
        return None
    kind = type(value)
    number: Any = value
    if is_subclass(kind, numpy.bool_):
        return bool(number)
    if is_subclass(kind, numpy.integer) and not is_subclass(kind, numpy.timedelta64):
        return int(number)
    if is_subclass(kind, numpy.floating):
        return float(number)
    if is_subclass(kind, numpy.complexfloating):
        return complex(number)
    return None


_SIZED: tuple[type[Any], ...] = (list, tuple, dict, set, frozenset, str, bytes, bytearray, deque)


def real_iter(value: Any) -> Iterator[Any]:
    """Iterate over a collection by its builtin base, not by an override of ``__iter__``."""
    for base in _SIZED:
        if is_subclass(type(value), base):
            return iter(base.__iter__(value))
    return iter(value)


def real_len(value: Any) -> int:
    """Count a collection by its builtin base, not by an override of ``__len__``."""
    for base in _SIZED:
        if is_subclass(type(value), base):
            return int(base.__len__(value))
    return len(value)


def real_items(value: Any) -> list[tuple[Any, Any]]:
    """List the items of a mapping, by ``dict.items`` where it is a dict."""
    return list(dict.items(value)) if is_subclass(type(value), dict) else list(value.items())


def class_name(kind: type, *, dotted: bool = False) -> str:
    """Return a class's own name, with its module where *dotted* and it is not a builtin."""
    module = namespace_of(kind).get("__module__")
    if dotted and type(module) is str and module not in ("builtins", "__main__"):
        return f"{module}.{name_of(kind)}"
    return str(name_of(kind))


def class_attribute(kind: type, name: str) -> Any:
    """Return the unbound value that a class or its bases hold under *name*; None if there is none."""
    for cls in mro_of(kind):
        if name in namespace_of(cls):
            return namespace_of(cls)[name]
    return None


def own_attributes(value: object) -> dict[str, Any]:
    """Return the instance's attribute dict; empty where it has none."""
    for cls in mro_of(type(value)):
        getter = namespace_of(cls).get("__dict__")
        if type(getter) is GetSetDescriptorType:
            return dict(getter.__get__(value))
    return {}


def real_attribute(value: object, name: str) -> Any:
    """Read an attribute past ``__getattribute__`` and ``__getattr__``.

    Raises:
        AttributeError: there is none.
    """
    for cls in mro_of(type(value)):
        if name not in namespace_of(cls):
            continue
        found = namespace_of(cls)[name]
        if type(found) is MemberDescriptorType:
            return found.__get__(value)
        if hasattr(type(found), "__get__"):
            return object.__getattribute__(value, name)
        return own_attributes(value).get(name, found)
    try:
        return own_attributes(value)[name]
    except KeyError:
        raise AttributeError(name) from None
