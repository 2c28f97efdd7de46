"""Guards around the hooks of guest classes, put in place before the class is made.

numpy believes the ``__array_interface__`` that ``__getattr__`` returns. A memo of ``deepcopy`` leads to host
objects. ``isinstance`` with an abstract guest class hands it the real class of an object, which may be
``type`` or sealed. A class runs guest code while it is made (``__init_subclass__``, ``__set_name__``), so the
hooks in its namespace are replaced before, descriptors of any kind included.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from agex._interpreter.type_slots import mro_of, name_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.classes import stand_ins
from agex.sandbox.classes.deepcopy_memo import shut
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.rules import names
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.context import asking

__all__ = ["FUTURE", "RAW_MEMORY", "compared", "guard", "is_guarded", "shown_operands"]

RAW_MEMORY = ("__array_interface__", "__array_struct__")
"""Attributes that hold an address of memory: no guest object has them."""

FUTURE = "_asyncio_future_blocking"
"""The attribute that marks a future: a task hands futures its step and the context of the host."""

_CHECKS = frozenset(
    {
        "__subclasshook__", "__subclasscheck__", "__instancecheck__", "_abc_impl",
        "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__",
    }
)  # fmt: skip
"""Hooks that are called to compare with a class, or to pickle an object."""
_PICKLING = frozenset({"__reduce__", "__reduce_ex__"})
_BUILTIN = frozenset(id(value) for value in vars(builtins).values() if isinstance(value, type))
"""The builtin classes: a proxy may name one of them as its class."""
_ANSWERED = names.DUNDERS | names.DEFINABLE | {"__mro_entries__", "__wrapped__"}
_UNANSWERED = frozenset({*RAW_MEMORY, FUTURE, "__deepcopy__", "__setstate__"})

Shown = Callable[[Any], Any]


def guard(namespace: dict[str, Any], shown: Shown) -> dict[str, Any]:
    """Return guarded hooks for a namespace; *shown* returns a value as guest code may hold it."""
    guarded = {}
    for name, make in _HOOKS.items():
        value = dict.get(namespace, name)
        if value is not None and not is_guarded(value):
            guarded[name] = make(value, shown)
    return guarded


def is_guarded(value: Any) -> bool:
    """Return whether a hook is one of our guards."""
    function = value.__func__ if type(value) is classmethod else value
    return type(function) is types.FunctionType and function.__globals__ is globals()


def shown_operands(hook: Any, shown: Shown) -> Any:
    """Guard a hook that gets classes from its caller: it gets their stand-ins."""
    called = _function(hook)

    @functools.wraps(called)
    def answer(self: Any, /, *others: Any) -> Any:
        return called(self, *(shown(each) if issubclass(type(each), type) else each for each in others))

    return answer


def compared(hook: Any, shown: Shown) -> Any:
    """Guard the comparison of a guest metaclass: for host code no guest class equals a host class.

    An abstract class looks a class up among those that it has seen, and so does a dispatcher.
    """
    told = shown_operands(hook, shown)

    @functools.wraps(_function(hook))
    def answer(self: Any, /, *others: Any) -> Any:
        asks = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - the caller
        is_hosts = any(
            issubclass(type(each), type) and not provenance.is_guest_class(each) for each in others
        )
        return NotImplemented if is_hosts and "check!" not in asks.f_builtins else told(self, *others)

    return answer


def _filtered(hook: Any, shown: Shown) -> Any:
    called = _function(hook)

    @functools.wraps(called)
    def answer(self: Any, name: str) -> Any:
        if name in _UNANSWERED:
            raise AttributeError(name)
        if name in _PICKLING:  # it may refuse a copy; its answer is not used
            with contextlib.suppress(
                SandboxAttributeError
            ):  # from object.__getattribute__, as guest code has it
                called(self, name)
        # The class answers these, and is guarded itself; names that no guest class may define are not found.
        if name in _CHECKS or (names.is_dunder(name) and name not in _ANSWERED):
            return (type if issubclass(type(self), type) else object).__getattribute__(self, name)
        if name.startswith("_") and provenance.keeps_back(type(self), name):
            return _of_host(self, name)
        found = called(self, name)
        if name == "__class__":
            _check_told(type(self), found, shown)
        elif name == "__bases__" and issubclass(type(found), tuple):
            for each in tuple.__iter__(found):
                _check_told(type(self), each, shown)
        return found

    return answer


def _of_host(self: Any, name: str) -> Any:
    """Return an attribute that host code keeps as its own state, without a call of a guest hook.

    In ``self._session.login(self._token)`` a guest hook could answer ``_session``, and get the token.
    """
    for part in mro_of(type(self)):
        hook = namespace_of(part).get("__getattr__")
        if hook is not None and not provenance.is_guest_class(part):
            return _bound(hook, self, type(self))(name)
    return object.__getattribute__(self, name)


def _check_told(class_: type, told: Any, shown: Shown) -> None:
    """Refuse to let a guest object pass for an instance of a host class: ``isinstance`` would believe it."""
    own = mro_of(class_)
    for part in mro_of(told) if issubclass(type(told), type) else ():
        is_open = id(part) in _BUILTIN or part is shown(type) or stand_ins.is_ours(part)
        if not (is_open or provenance.is_guest_class(part) or is_one_of(part, own)):
            raise SandboxTypeError(
                f"an object of {name_of(class_)} cannot pass for one of {name_of(told)}; "
                "name a class of your own"
            )


def _without_memo(hook: Any, shown: Shown) -> Any:
    called = _function(hook)

    @functools.wraps(called)
    def answer(self: Any, memo: Any = None, /) -> Any:
        return called(self, shut(memo))

    return answer


def _of_class(hook: Any, shown: Shown) -> Any:
    """Guard ``__subclasshook__``, which is read from the class."""

    def answer(cls: Any, /, *others: Any) -> Any:
        return _bound(hook, None, cls)(*map(shown, others))

    return classmethod(answer)


def _function(hook: Any) -> Callable[..., Any]:
    """Return a hook of any kind as a function that takes the object first."""
    if type(hook) is types.FunctionType:
        return hook
    return lambda self, /, *args: _bound(hook, self, type(self))(*args)


def _bound(hook: Any, instance: Any, owner: type) -> Any:
    get = getattr(type(hook), "__get__", None)
    return hook if get is None else get(hook, instance, owner)


class _Told:
    """Stands in a class for a descriptor of the name or the annotations of its instances.

    Host code reads these of any object. Other descriptors are replaced when a run ends. A class would take a
    new one for its own name, so this one is there from the start.
    """

    __slots__ = ("_hooks", "_value")

    def __init__(self, hooks: Any, value: Any) -> None:
        self._hooks = hooks
        self._value = value

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self._value if instance is None else self._hooks.told(self._value, instance)

    def __set_name__(self, owner: type, name: str) -> None:
        if hasattr(type(self._value), "__set_name__"):
            type(self._value).__set_name__(self._value, owner, name)


class _ToldFirst(_Told):
    """A data descriptor, which comes before the dict of an instance, as a property does."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        type(self._value).__set__(self._value, instance, value)

    def __delete__(self, instance: Any) -> None:
        type(self._value).__delete__(self._value, instance)


def _told(value: Any, shown: Shown) -> Any:
    """Guard a descriptor that runs when it is read; any other value stays as it is."""
    guards, kind = asking(), type(value)
    is_guarded = kind is _Told or kind is _ToldFirst
    if guards is None or is_guarded or is_one_of(kind, _BINDING) or not hasattr(kind, "__get__"):
        return value
    return (_ToldFirst if hasattr(kind, "__set__") else _Told)(guards.hooks, value)


_BINDING = (types.FunctionType, classmethod, staticmethod)
"""Descriptors that return a method when they are read, and run nothing yet."""

_HOOKS: dict[str, Callable[[Any, Shown], Any]] = {
    "__annotations__": _told,
    "__name__": _told,
    "__getattr__": _filtered,
    "__getattribute__": _filtered,
    "__deepcopy__": _without_memo,
    "__subclasshook__": _of_class,
    "__subclasscheck__": shown_operands,
    "__instancecheck__": shown_operands,
}
