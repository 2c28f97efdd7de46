"""A check of copies: the copy of an object is of the same class.

``copy`` makes an object by ``__new__`` and fills it by ``__getstate__``, and guest code may define both. A
host object, class or function returned by ``__new__`` would be written to. So the functions that do it, in
``copy`` and ``collections``, are replaced once a process. They check each copy of a guest object, also when
the host copies. For other objects nothing changes.

``copy`` and ``pickle`` take a bound method apart into its object and the name of its function. That name may
be any, ``__globals__`` for example. So the method of a guest function is rebuilt from the function itself.

``copy`` asks an object how to copy it before it asks the class. A ``__deepcopy__`` in the dict of a guest
object would get the memo, which holds the content of host objects. So for guest objects only the class is
asked.
"""

from __future__ import annotations

import collections
import copy
import copyreg
import functools
import types
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxTypeError
from agex.sandbox.classes import hook_guards, host_classes, unsafe_protocols
from agex.sandbox.rules import names
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import CURRENT

__all__ = ["install"]


def install() -> None:
    """Put the check in place, once a process."""
    if _copy._reconstruct is not _reconstruct:
        _copy._reconstruct = _reconstruct
        _copy.getattr = _getattr  # shadows the builtin for the functions of that module
        copyreg.pickle(types.MethodType, _parts)
        for class_ in (collections.UserDict, collections.UserList):
            type.__setattr__(class_, "__copy__", _copying(vars(class_)["__copy__"]))


_copy: Any = copy
_real: Callable[..., Any] = _copy._reconstruct


def _reconstruct(
    x: Any, memo: Any, func: Callable[..., Any], args: Any, state: Any = None, *parts: Any, **options: Any
) -> Any:
    class_ = type(x)
    if not _is_guests(x):
        return _real(x, memo, func, args, state, *parts, **options)

    def make(*args: Any) -> Any:
        return _of_class(class_, func(*args))

    return _real(x, memo, make, args, _checked_state(class_, state), *parts, **options)


def _parts(method: types.MethodType) -> tuple[Any, ...]:
    """Return the parts from which a method is rebuilt; for a host method those that the interpreter uses."""
    function: Any = method.__func__
    is_function = type(function) is types.FunctionType
    if provenance.session_of(function) is not None if is_function else _is_guests(function):
        return types.MethodType, (function, method.__self__)
    return getattr, (method.__self__, function.__name__)


def _is_guests(x: Any) -> bool:
    """Return whether an object is of a guest class, so that its own attributes may have any name."""
    return unsafe_protocols.is_namespace(x) or provenance.is_guest_class(type(x))


def _getattr(x: Any, name: str, *default: Any) -> Any:
    """Do what ``getattr`` does, but ignore the own attributes of a guest object."""
    try:
        held = object.__getattribute__(x, "__dict__")
    except AttributeError:  # it has slots
        held = ()
    if name not in held or issubclass(type(x), type) or not _is_guests(x):
        return getattr(x, name, *default)
    part = next((part for part in mro_of(type(x)) if name in namespace_of(part)), None)
    found = default[0] if part is None else namespace_of(part)[name]
    get = getattr(type(found), "__get__", None)
    return found if part is None or get is None else get(found, x, type(x))


def _of_class(class_: type, made: Any) -> Any:
    if type(made) is not class_:
        raise SandboxTypeError(
            f"the copy of an object is of its class, and __new__() of {class_.__name__} gave another; "
            "define __copy__() and __deepcopy__()"
        )
    return made


def _checked_state(class_: type, state: Any) -> Any:
    """Return the state of an object in a form whose attribute names can be checked."""
    spaces = map(namespace_of, mro_of(class_))
    hides = hook_guards.is_guarded(
        next(space["__getattribute__"] for space in spaces if "__getattribute__" in space)
    )
    if state is None or (host_classes.has(class_, "__setstate__") and not hides):
        return state
    is_pair = type(state) is tuple and len(state) == 2
    own, slots = state if is_pair else (state, None)
    if not slots:
        return own, None
    slots = dict(slots)
    if any(type(name) is not str or names.is_dunder(name) for name in slots):
        raise SandboxTypeError(f"the state of {class_.__name__} must have attributes of its own for keys")
    return own, slots


def _copying(real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a checked ``__copy__`` for a container: the real one writes to the result of ``__new__``."""

    @functools.wraps(real)
    def __copy__(self: Any) -> Any:  # noqa: N807 - it is the one of the class
        class_ = type(self)
        if CURRENT.get() is None and not provenance.is_guest_class(class_):
            return real(self)
        if not issubclass(class_, (collections.UserDict, collections.UserList)):
            raise SandboxTypeError(
                f"{real.__qualname__}() takes an object of its class, got {class_.__name__}"
            )
        made = _of_class(class_, class_.__new__(class_))
        made.__dict__.update(self.__dict__)
        made.__dict__["data"] = copy.copy(self.__dict__["data"])
        return made

    return __copy__
