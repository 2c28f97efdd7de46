"""What classes of the guest's answer by their hooks, which are guarded before there is the class.

numpy believes what ``__getattr__`` says of ``__array_interface__``, a memo of ``deepcopy`` tells of the
objects of the host, and who asks ``isinstance`` for an abstract class of the guest's hands it the real
class of an object, which may be ``type`` or a sealed one. A class runs code of the guest's while it is
made (``__init_subclass__``, ``__set_name__``). So the hooks in its namespace are replaced before, of
whatever kind they are.
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
from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.classes.deepcopy_memo import shut
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance as origins
from agex.sandbox.runtime.context import asking

__all__ = ["FUTURE", "RAW_MEMORY", "compared", "guard", "is_guarded", "shown_operands"]

RAW_MEMORY = ("__array_interface__", "__array_struct__")
"""What tells an address of memory: no object of a guest's has it."""

FUTURE = "_asyncio_future_blocking"
"""What makes a future of what a coroutine yields: a task hands one its step and the context of the host."""

_CHECKS = frozenset(
    {
        "__subclasshook__", "__subclasscheck__", "__instancecheck__", "_abc_impl",
        "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__",
    }
)  # fmt: skip
"""What is asked by whoever compares with a class, or pickles an object."""
_PICKLING = frozenset({"__reduce__", "__reduce_ex__"})
_BUILTIN = frozenset(id(value) for value in vars(builtins).values() if isinstance(value, type))
"""The builtin classes: a proxy over an object of one may say so."""
_ANSWERED = ledger.DUNDERS | ledger.DEFINABLE | {"__mro_entries__", "__wrapped__"}
_UNANSWERED = frozenset({*RAW_MEMORY, FUTURE, "__deepcopy__", "__setstate__"})

Shown = Callable[[Any], Any]


def guard(namespace: dict[str, Any], shown: Shown) -> dict[str, Any]:
    """Return the guarded hooks for a class of this namespace; *shown* gives a value as a guest may hold it."""
    guarded = {}
    for name, make in _HOOKS.items():
        value = dict.get(namespace, name)
        if value is not None and not is_guarded(value):
            guarded[name] = make(value, shown)
    return guarded


def is_guarded(value: Any) -> bool:
    """Return whether a hook is one of ours, around the guest's."""
    function = value.__func__ if type(value) is classmethod else value
    return type(function) is types.FunctionType and function.__globals__ is globals()


def shown_operands(hook: Any, shown: Shown) -> Any:
    """Guard a hook that is given classes, of whoever asks it."""
    called = _function(hook)

    @functools.wraps(called)
    def answer(self: Any, /, *others: Any) -> Any:
        return called(self, *(shown(each) if issubclass(type(each), type) else each for each in others))

    return answer


def compared(hook: Any, shown: Shown) -> Any:
    """Guard how a metaclass compares its classes: code of the host's finds none of them equal to the host's.

    An abstract class looks for a class among those that it knows, a dispatcher among those that it has met.
    """
    told = shown_operands(hook, shown)

    @functools.wraps(_function(hook))
    def answer(self: Any, /, *others: Any) -> Any:
        asks = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - who compares
        is_hosts = any(issubclass(type(each), type) and not origins.is_guest_class(each) for each in others)
        return NotImplemented if is_hosts and "check!" not in asks.f_builtins else told(self, *others)

    return answer


def _filtered(hook: Any, shown: Shown) -> Any:
    called = _function(hook)

    @functools.wraps(called)
    def answer(self: Any, name: str) -> Any:
        if name in _UNANSWERED:
            raise AttributeError(name)
        if name in _PICKLING:  # it may refuse to be copied; what it answers is not believed
            with contextlib.suppress(SandboxAttributeError):  # of object.__getattribute__, as guests have it
                called(self, name)
        # What the class has, which is guarded itself; nothing that no class of a guest's may define.
        if name in _CHECKS or (ledger.is_dunder(name) and name not in _ANSWERED):
            return (type if issubclass(type(self), type) else object).__getattribute__(self, name)
        if name.startswith("_") and origins.keeps_back(type(self), name):
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
    """Look for a name that code of the host's has for its own state: it would use what it is answered.

    Not by what the guest's part says: ``self._session.login(self._token)`` would tell that the token.
    """
    for part in mro_of(type(self)):
        hook = namespace_of(part).get("__getattr__")
        if hook is not None and not origins.is_guest_class(part):
            return _bound(hook, self, type(self))(name)
    return object.__getattribute__(self, name)


def _check_told(class_: type, told: Any, shown: Shown) -> None:
    """Refuse that an object passes for one of a class of the host's: ``isinstance`` believes it."""
    own = mro_of(class_)
    for part in mro_of(told) if issubclass(type(told), type) else ():
        is_open = id(part) in _BUILTIN or part is shown(type) or instead.is_ours(part)
        if not (is_open or origins.is_guest_class(part) or is_one_of(part, own)):
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
    """Guard ``__subclasshook__``, which is read off a class."""

    def answer(cls: Any, /, *others: Any) -> Any:
        return _bound(hook, None, cls)(*map(shown, others))

    return classmethod(answer)


def _function(hook: Any) -> Callable[..., Any]:
    """Return a hook of any kind as a function of the object."""
    if type(hook) is types.FunctionType:
        return hook
    return lambda self, /, *args: _bound(hook, self, type(self))(*args)


def _bound(hook: Any, instance: Any, owner: type) -> Any:
    get = getattr(type(hook), "__get__", None)
    return hook if get is None else get(hook, instance, owner)


class _Told:
    """Stands in a class for what tells the name of its objects, or their annotations.

    The host asks for these without a thought. Others are exchanged when a run ends; a class would take one
    for its own name, so this one stands there from the start.
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
    """One that comes before the object's own, as a property does."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        type(self._value).__set__(self._value, instance, value)

    def __delete__(self, instance: Any) -> None:
        type(self._value).__delete__(self._value, instance)


def _told(value: Any, shown: Shown) -> Any:
    """Guard what runs when it is read: the plain name of a class is left as it is."""
    guards, kind = asking(), type(value)
    is_guarded = kind is _Told or kind is _ToldFirst
    if guards is None or is_guarded or is_one_of(kind, _BINDING) or not hasattr(kind, "__get__"):
        return value
    return (_ToldFirst if hasattr(kind, "__set__") else _Told)(guards.hooks, value)


_BINDING = (types.FunctionType, classmethod, staticmethod)
"""What gives a method where it is read, and runs nothing yet."""

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
