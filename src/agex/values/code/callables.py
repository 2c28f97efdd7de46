"""Callables that are no guest functions, taken apart by their parts.

A partial is a function and its arguments, a bound method an object and a name. A wrapper of the standard
library is kept as its guest function, and made again.
"""

from __future__ import annotations

import functools
import gc
import operator
import re
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import mro_of
from agex.values.adapters.callable_builder import GETTERS
from agex.values.base.function_wrappers import DISPATCHER, MANAGERS, plain_function
from agex.values.base.type_checks import is_a, is_class, is_function
from agex.values.code.reconstructor import Builder

if TYPE_CHECKING:
    from agex.values.code.capture import Captures

__all__ = ["KINDS", "CannotKeep", "exact_text", "is_code", "take", "tops"]


class CannotKeep(Exception):
    """An object has no form that can be stored; the text says why."""


_BuiltinMethod: type = type(re.compile("").match)
_Comparing: type = type(functools.cmp_to_key(lambda a, b: 0))

KINDS: tuple[type, ...] = (
    type, types.FunctionType, types.BuiltinFunctionType, _BuiltinMethod, types.ModuleType, types.MethodType,
    types.MethodDescriptorType, types.ClassMethodDescriptorType,
    functools.partial, type(functools.lru_cache(lambda: None)), typing.TypeVar,
    operator.itemgetter, _Comparing, property,
)  # fmt: skip
"""Types whose values can be called, or can be kept by name only."""


def is_code(value: Any) -> bool:
    """Return whether a value must not lie on the stack of an unpickler."""
    return is_a(value, KINDS)


def take(captures: Captures, encoder: Any, value: Any) -> Any:
    """Take a callable apart; None for one that is kept by its name or not at all.

    Raises:
        CannotKeep: it has no form that can be stored.
    """
    if is_function(value):
        return _take_wrapper(encoder, value) or _take_method(captures, encoder, value)
    for kind, taker in _TAKERS:
        if is_a(value, kind):
            return taker(captures, encoder, value)
    if hasattr(value, "cache_parameters"):
        parameters = value.cache_parameters()
        function = encoder.top(value.__wrapped__)
        return Builder.cached, (function, parameters["maxsize"], parameters["typed"])
    return _take_getter(captures, encoder, value)


def _take_wrapper(encoder: Any, value: types.FunctionType) -> Any:
    """Take apart a wrapper that the standard library made around a guest function."""
    for name, code in MANAGERS.items():
        if value.__code__ is code:
            return Builder.manager, (name, encoder.top(vars(value)["__wrapped__"]))
    if (
        value.__code__ is DISPATCHER
        and type(registry := vars(value).get("registry")) is types.MappingProxyType
    ):
        pairs = [(encoder.top(cls), encoder.top(function)) for cls, function in registry.items()]
        default = encoder.top(vars(value)["__wrapped__"])
        return Builder.dispatcher, (default,), pairs, None, None, Builder.fill_dispatcher
    return None


def _take_partial(captures: Captures, encoder: Any, value: Any) -> Any:
    is_plain = type(value) is functools.partial
    if not is_plain and captures.is_guests(type(value)):
        raise CannotKeep("its class is over functools.partial")
    if not is_plain and captures.guest is not None and captures.guest.host_name(value) is not None:
        return None  # a builtin of the session
    args = tuple([encoder.top(each) for each in value.args])
    attributes = (tops(encoder, vars(value)),) if is_plain and vars(value) else ()
    return Builder.partial, (encoder.top(value.func), args, tops(encoder, value.keywords), *attributes)


def _take_bound(captures: Captures, encoder: Any, value: types.MethodType) -> Any:
    owner = value.__self__
    if not captures.is_guests(owner if is_class(owner) else type(owner)):
        return _take_method(captures, encoder, value)
    return (Builder.method, (value.__func__.__name__, encoder.top(owner))) if _is_its_own(value) else None


def _is_its_own(method: types.MethodType) -> bool:
    owner = method.__self__
    mro = mro_of(owner if is_class(owner) else type(owner))
    name = getattr(method.__func__, "__name__", "")
    found = next((vars(cls)[name] for cls in mro if name in vars(cls)), None)
    return plain_function(found) is method.__func__


def _take_method(captures: Captures, encoder: Any, value: Any) -> Any:
    """Take apart a host method that has no name of its own."""
    guest = captures.guest
    if guest is None or (type(value) not in _OF_CLASSES and guest.host_name(value) is not None):
        return None
    found = guest.method_of(value)
    if found is None:
        return None
    encoder.note_session()
    return Builder.hosts_method, (encoder.top(found[0]), found[1])


_OF_CLASSES = (types.MethodDescriptorType, types.ClassMethodDescriptorType)


def _take_comparing(_captures: Captures, encoder: Any, value: Any) -> Any:
    found = [each for each in gc.get_referents(value) if each is not type(value)]
    if len(found) != 1:
        raise CannotKeep("it stands for one value in a comparison")
    return Builder.comparing, (encoder.top(found[0]),)


def _take_property(_captures: Captures, encoder: Any, value: property) -> Any:
    if type(value) is not property:
        return None
    parts = tuple([encoder.top(each) for each in (value.fget, value.fset, value.fdel)])
    return Builder.property_, (*parts, exact_text(value.__doc__))


def _take_getter(captures: Captures, encoder: Any, value: Any) -> Any:
    """Take apart an ``operator.itemgetter`` or one of its siblings, by its arguments."""
    name = None if captures.guest is None else captures.guest.host_name(type(value))
    if name not in GETTERS:
        return None
    made, args, *_ = value.__reduce__()
    keywords = made.keywords if type(made) is functools.partial else {}
    args = (*made.args, *args) if type(made) is functools.partial else args
    encoder.note_session()
    return Builder.getter, (name, tuple(map(encoder.top, args)), tops(encoder, keywords))


def _take_type_variable(captures: Captures, encoder: Any, value: typing.TypeVar) -> Any:
    if captures.guest is not None and captures.guest.host_name(value) is not None:
        return None  # typing.AnyStr
    if getattr(value, "__infer_variance__", False):  # its bound is code, which runs when it is read
        raise CannotKeep("it is a parameter of a class or function statement")
    if getattr(value, "has_default", bool)():  # since Python 3.13
        raise CannotKeep("it has a default")
    bounds = tuple([encoder.top(each) for each in (value.__bound__, *value.__constraints__)])
    variance = (value.__covariant__, value.__contravariant__)
    return Builder.type_variable, (exact_text(value.__name__), bounds, variance)


_TAKERS: tuple[tuple[type | tuple[type, ...], Callable[[Captures, Any, Any], Any]], ...] = (
    (functools.partial, _take_partial),
    (types.MethodType, _take_bound),
    ((types.BuiltinFunctionType, *_OF_CLASSES), _take_method),
    (typing.TypeVar, _take_type_variable),
    (_Comparing, _take_comparing),
    (property, _take_property),
)


def exact_text(text: Any) -> str | None:
    """Return a text as an exact `str`, without a guest subclass; None for anything else."""
    return str.__str__(text) if is_a(text, str) else None


def tops(encoder: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Wrap values by name for a place that is unwrapped when it is loaded."""
    return {name: encoder.top(value) for name, value in values.items()}
