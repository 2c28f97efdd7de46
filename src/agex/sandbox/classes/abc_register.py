"""``register`` of abstract guest classes: host classes stay what class patterns take them for.

An abstract class over ``list`` or ``dict`` has a flag by which ``match`` tells sequences from mappings. The
interpreter writes this flag into a class that is registered, and into its subclasses. ``Counter`` would
no longer match ``{...}``.
"""

from __future__ import annotations

import abc
import functools
import types
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import flags_of, name_of
from agex.errors import SandboxTypeError

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["registering"]

_MATCHED = 1 << 5 | 1 << 6  # Py_TPFLAGS_SEQUENCE, Py_TPFLAGS_MAPPING
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


def registering(guards: Membrane, value: Any) -> Any:
    """Return the ``register`` of a guest class, with a check of the classes that it is given."""
    if type(value) is not types.MethodType or value.__func__ is not abc.ABCMeta.register:
        return value
    class_: Any = value.__self__

    @functools.wraps(value)
    def register(*args: Any, **kwargs: Any) -> Any:
        for each in (*args, *kwargs.values()):
            if issubclass(type(each), type) and not guards.classes.is_guest(each) and _marks(class_, each):
                raise SandboxTypeError(
                    f"{name_of(each)} cannot be registered with {name_of(class_)}, which is over a list or a "
                    "dict; derive that from abc.ABC"
                )
        return value(*args, **kwargs)

    del vars(register)["__wrapped__"]
    return register


def _marks(class_: type, other: type) -> bool:
    """Return whether registering *other* would make it match as *class_* does."""
    mark, flags = flags_of(class_) & _MATCHED, flags_of(other)
    return bool(mark) and flags & _MATCHED != mark and not flags & _IMMUTABLE
