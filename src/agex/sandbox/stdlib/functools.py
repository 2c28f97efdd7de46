"""``functools`` for guest code: decorators read and write as guest code may.

They write to guest functions and classes only. An annotation that is text is evaluated as guest code.
"""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxError, SandboxTypeError
from agex.sandbox.classes import lru_caches, stand_ins
from agex.sandbox.classes.errors import exact_name
from agex.sandbox.runtime.context import asking
from agex.sandbox.runtime.scopes import is_bindable
from agex.sandbox.stdlib.decorators import bare, writing
from agex.sandbox.stdlib.typing import get_type_hints

if typing.TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["FUNCTOOLS", "CachedProperty"]


# -- wraps


def update_wrapper(
    wrapper: Any,
    wrapped: Any,
    assigned: Iterable[str] = functools.WRAPPER_ASSIGNMENTS,
    updated: Iterable[str] = functools.WRAPPER_UPDATES,
) -> Any:
    """Do what ``functools.update_wrapper`` does, onto guest functions and objects only."""
    guards = asking()
    if guards is None or not (guards.is_guest_function(wrapper) or guards.is_own(wrapper)):
        raise SandboxTypeError(
            "update_wrapper() and wraps() write to what they are given; use them on a function of your own"
        )
    names = tuple(map(exact_name, assigned))  # a guest subclass of str may lie about its prefix
    for name in names:
        # Python 3.14 names the function that evaluates the annotations; here their values are copied instead.
        is_late = name == "__annotate__"
        read = "__annotations__" if is_late else name
        try:
            value = guards.getattr(wrapped, read)
        except SandboxError:
            raise
        except AttributeError:
            continue
        guards.setattr(wrapper, read, dict(value) if is_late else value)
    for name in tuple(map(exact_name, updated)):
        found = _attributes(guards, wrapped) if name == "__dict__" else guards.getattr(wrapped, name, {})
        guards.getattr(guards.getattr(wrapper, name), "update")(found)
    guards.setattr(wrapper, "__wrapped__", wrapped)
    return wrapper


def _attributes(guards: Membrane, wrapped: Any) -> Mapping[str, Any]:
    """Return the content of ``vars(wrapped)``; for a host object, only its public part."""
    if guards.is_own(wrapped) or guards.is_guest_function(wrapped):
        found = guards.vars(wrapped) if hasattr(wrapped, "__dict__") else {}
        return {name: found[name] for name in found if is_bindable(name)}
    names = [name for name in getattr(wrapped, "__dict__", {}) if not name.startswith("_")]
    return {name: guards.getattr(wrapped, name) for name in names}


def wraps(
    wrapped: Any,
    assigned: Iterable[str] = functools.WRAPPER_ASSIGNMENTS,
    updated: Iterable[str] = functools.WRAPPER_UPDATES,
) -> Callable[..., Any]:
    """Do what ``functools.wraps`` does, onto guest functions and objects only."""
    return functools.partial(update_wrapper, wrapped=wrapped, assigned=assigned, updated=updated)


def cache(user_function: Any, /) -> Any:
    """Do what ``functools.cache`` does."""
    return lru_caches.note(functools.cache(bare(user_function)))


def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """Do what ``functools.lru_cache`` does."""
    decorate: Any = functools.lru_cache(bare(maxsize), typed)
    if callable(maxsize):
        return lru_caches.note(decorate)
    return lambda user_function: lru_caches.note(decorate(bare(user_function)))


# -- single dispatch


def singledispatch(func: Any) -> Any:
    """Do what ``functools.singledispatch`` does; an annotation that is text is evaluated as guest code."""
    return _guarded(functools.singledispatch(bare(func)))


def _guarded(dispatcher: Any) -> Any:
    """Make a dispatcher read annotations as guest code may."""
    real = dispatcher.register

    def register(cls: Any, func: Any = None) -> Any:
        if func is not None:
            return real(cls, func)  # raises if cls is no class, and evaluates nothing
        if _is_dispatchable(cls):
            return lambda func: register(cls, func)
        return real(_first_annotation(cls), cls)

    dispatcher.register = register
    return dispatcher


def _is_dispatchable(cls: Any) -> bool:
    if _is_union(cls):
        return all(isinstance(each, type) for each in typing.get_args(cls))
    return isinstance(cls, type)


def _is_union(cls: Any) -> bool:
    return typing.get_origin(cls) in {typing.Union, types.UnionType}


def _first_annotation(function: Any) -> Any:
    if not getattr(function, "__annotations__", {}):
        raise TypeError(
            f"Invalid first argument to `register()`: {function!r}. Use either `@register(some_class)` or "
            "plain `@register` on an annotated function."
        )
    name, cls = next(iter(get_type_hints(function).items()))
    if not _is_dispatchable(cls):
        what = "not all arguments are classes" if _is_union(cls) else "is not a class"
        raise TypeError(f"Invalid annotation for {name!r}. {cls!r} {what}.")
    return cls


def _init(self: Any, func: Any) -> None:
    kind: Any = type(func)
    method = kind(bare(func.__func__)) if kind in {classmethod, staticmethod} else bare(func)
    state = vars(functools.singledispatchmethod(method))
    # Not by setattr: a subclass must not see the unguarded dispatcher.
    vars(self).update(state, dispatcher=_guarded(state["dispatcher"]), func=method)


class _Dispatching:
    """The interface of a dispatching method, which returns functions only."""

    _method_cache = None  # in Python 3.13.0

    def __init__(self, real: Any) -> None:
        self._dispatch = real.dispatcher.dispatch
        self.dispatcher, self.func, self.register = self, real.func, real.register
        self.__isabstractmethod__ = real.__isabstractmethod__

    def dispatch(self, cls: Any) -> Any:
        return _bindable(self._dispatch(cls))


def _bindable(func: Any) -> Any:
    """Refuse a descriptor that reads when it is bound: a host property would read or write any object."""
    behind = func
    while issubclass(type(behind), (classmethod, staticmethod)):
        behind = _BEHIND[issubclass(type(behind), classmethod)](behind)
    if issubclass(type(behind), _READERS):
        raise SandboxTypeError(f"a method is made of a function here, got {type(behind).__name__}")
    return _as_bound(func) if type(func) is types.MethodType else func


def _as_bound(method: types.MethodType) -> Any:
    """Return a host method as a function that stays bound to its object, as since Python 3.13."""
    guards = asking()
    if guards is not None and guards.is_guest_function(method.__func__):
        return method

    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call


_BEHIND = {
    True: vars(classmethod)["__func__"].__get__,
    False: vars(staticmethod)["__func__"].__get__,
}
_READERS = (
    property,
    functools.cached_property,
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
)


def _get(self: Any, obj: Any, cls: Any = None) -> Any:
    method = _real_get(_Dispatching(self), obj, cls)
    if type(method) is types.FunctionType:
        for name in vars(method).keys() - _OF_METHOD:  # of attributes that a subclass has for the function
            del vars(method)[name]  # not by delattr: a class method has its __name__ there, too
    return method


_real_get: Any = functools.singledispatchmethod.__get__
_OF_METHOD = {"__isabstractmethod__", "__wrapped__", "register"}


# Made of the functions of the real class, not derived from it: through a base's ``__init__`` a guest subclass
# would reach the real dispatcher, which evaluates annotations unguarded.
singledispatchmethod = stand_ins.stands_for(
    functools.singledispatchmethod,
    type(
        "singledispatchmethod",
        (),
        {
            **{
                name: value
                for name, value in vars(functools.singledispatchmethod).items()
                if name not in {"__dict__", "__weakref__"}
            },
            "__get__": _get,
            "__init__": _init,
        },
    ),
)
"""``functools.singledispatchmethod``; an annotation that is text is evaluated as guest code."""


def _init_partial(self: Any, func: Any, /, *args: Any, **keywords: Any) -> None:
    if isinstance(func, partialmethod):  # the real one unpacks only its own class
        func = functools.partialmethod(func.func, *func.args, **func.keywords)
    vars(self).update(vars(functools.partialmethod(func, *args, **keywords)))


def _get_partial(self: Any, obj: Any, cls: Any = None) -> Any:
    # Of the checked function: a subclass may return another one each time.
    return functools.partialmethod(_bindable(self.func), *self.args, **self.keywords).__get__(obj, cls)


partialmethod: Any = stand_ins.stands_for(
    functools.partialmethod,
    type(
        "partialmethod",
        (),
        {
            **{
                name: value
                for name, value in vars(functools.partialmethod).items()
                if name not in {"__dict__", "__weakref__", "__new__"}
            },
            "__init__": _init_partial,
            "__get__": _get_partial,
        },
    ),
)
"""``functools.partialmethod``, of functions only."""


# -- cached_property


class CachedProperty:
    """A method that runs once for an object and keeps its value there.

    It reads and writes only objects of its own class. The real ``functools.cached_property`` reads and writes
    the namespace of any object passed to its ``__get__``, under the name it was last told. Called by hand, it
    would read a private attribute of a host object, or plant a method there.

    Args:
        func: the method.
    """

    __slots__ = ("__dict__", "_func", "_name")

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func
        self._name: str | None = None
        self.__doc__ = func.__doc__
        if sys.version_info >= (3, 13):
            self.__module__ = func.__module__

    @property
    def func(self) -> Callable[[Any], Any]:
        """The method."""
        return self._func

    @property
    def attrname(self) -> str | None:
        """The name it was given in its class."""
        return self._name

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the name that the class statement bound it to."""
        if self._name is None:
            self._name = name
        elif name != self._name:
            raise TypeError(
                "Cannot assign the same cached_property to two different names "
                f"({self._name!r} and {name!r})."
            )

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the value, from the object if it is kept there."""
        if instance is None:
            return self
        name: Any = _NAME(self)  # read once, past a subclass that could return another name each time
        if name is None:
            raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
        if type(name) is not str or not self._belongs_to(instance, name):
            raise SandboxTypeError(
                f"cached_property {name!r} belongs to no class of this object; read it as an attribute"
            )
        try:
            cache = instance.__dict__
        except AttributeError:  # __slots__ without one
            raise TypeError(
                f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {name!r} property."
            ) from None
        value = cache.get(name, _UNCACHED)
        if value is _UNCACHED:
            value = self._func(instance)
            try:
                cache[name] = value
            except TypeError:  # the namespace of a class
                raise TypeError(
                    f"The '__dict__' attribute on {type(instance).__name__!r} instance "
                    f"does not support item assignment for caching {name!r} property."
                ) from None
        return value

    def _belongs_to(self, instance: Any, name: str) -> bool:
        """Return whether reading *name* of *instance* leads here, or the class is pure guest code."""
        guards = asking()
        for base in mro_of(type(instance)):
            found = namespace_of(base).get(name, _UNCACHED)
            if found is not _UNCACHED:
                if found is self:
                    return guards is None or guards.readable(instance, name) is instance
                break
        return guards is not None and guards.classes.is_pure(type(instance))

    __class_getitem__: Any = classmethod(types.GenericAlias)


_UNCACHED = object()
_NAME: Callable[[CachedProperty], str | None] = vars(CachedProperty)["_name"].__get__
stand_ins.stands_for(functools.cached_property, CachedProperty)

FUNCTOOLS = {
    "cache": cache,
    "lru_cache": lru_cache,
    "cached_property": CachedProperty,
    "partialmethod": partialmethod,
    "wraps": wraps,
    "update_wrapper": update_wrapper,
    "singledispatch": singledispatch,
    "singledispatchmethod": singledispatchmethod,
    "total_ordering": writing(functools.total_ordering),
}
