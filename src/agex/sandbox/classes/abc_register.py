"""``register`` of an abstract class: a class that is not the guest's stays what patterns take it for.

An abstract class over ``list`` or ``dict`` hands on what ``match`` asks a class for: the interpreter writes
it into the class that is registered and into those over that. No ``Counter`` would be a ``{...}`` any more.
"""

from __future__ import annotations

import abc
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import name_of
from agex.errors import SandboxTypeError

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["registering"]

_MATCHED = 1 << 5 | 1 << 6  # Py_TPFLAGS_SEQUENCE, Py_TPFLAGS_MAPPING
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE
_FLAGS: Callable[[type], int] = type.__dict__["__flags__"].__get__


def registering(guards: Membrane, value: Any) -> Any:
    """Give *value*, the ``register`` of a class of the guest's, as the guest may call it."""
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
    """Tell whether *other* would come to be matched as *class_* is."""
    mark, flags = _FLAGS(class_) & _MATCHED, _FLAGS(other)
    return bool(mark) and flags & _MATCHED != mark and not flags & _IMMUTABLE
