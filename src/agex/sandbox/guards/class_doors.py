"""Doors for the special names of classes: how they are made, called, read and shown.

Each takes the guards of a session, a receiver and a name, as in `agex.sandbox.guards.attribute_doors`.
"""

from __future__ import annotations

import builtins as host
import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.classes import (
    generic_classes,
    guest_type,
    hook_guards,
    host_classes,
    sealed_classes,
    stand_ins,
)
from agex.sandbox.classes.errors import described, exact_name, refusal
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.classes.stand_ins import LazyMeta
from agex.sandbox.classes.super_lookup import super_answers, super_self
from agex.sandbox.classes.views import Inert
from agex.sandbox.guards import wrapped_functions
from agex.sandbox.guards.receivers import Door
from agex.sandbox.stdlib.generic_alias import origin_of

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = [
    "accessor_door",
    "alias_door",
    "annotations_door",
    "call_door",
    "class_door",
    "dict_door",
    "get_door",
    "graph_door",
    "inherited_door",
    "init_door",
    "is_metaclass",
    "named_after",
    "new_door",
    "orig_door",
    "own_door",
    "replace_door",
    "wrapped_door",
]


def graph_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Refuse the bases of a metaclass, which lead to ``type``, and of a stand-in of a host class."""
    subject = origin_of(super_self(receiver) if type(receiver) is super else receiver)
    if is_metaclass(subject):
        raise refusal(receiver, name)
    if issubclass(type(subject), type):
        for part in mro_of(subject):
            if stand_ins.is_stand_in(part) or guards.shown_class(stand_ins.shown(part)) is not part:
                raise refusal(receiver, name)
    return receiver


def alias_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Make our aliases for ``super().__class_getitem__``: a call of a plain one writes to its result."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    owner = subject if issubclass(type(subject), type) else type(subject)
    maker = super_answers(receiver, name) if type(receiver) is super else owner
    is_plain = generic_classes.is_plain(maker) and guards.is_own(owner)
    return Door(functools.partial(generic_classes.Alias, owner)) if is_plain else receiver


def is_metaclass(subject: Any) -> bool:
    """Return whether an object is a metaclass."""
    return issubclass(type(subject), type) and issubclass(subject, type)


def class_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return ``__class__`` as ``type(x)`` does; a proxy written in guest code may answer itself."""
    if guards.is_own(receiver) and not issubclass(type(receiver), type):
        spaces = map(namespace_of, mro_of(type(receiver)))
        answers = next(space["__getattribute__"] for space in spaces if "__getattribute__" in space)
        if _is_guests_code(guards, answers):  # a proxy answers with the class of its object
            return Door(guest_type.as_shown(host.getattr(receiver, name)))
    return Door(guest_type.type_of(receiver))


def dict_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return ``__dict__`` as ``vars(x)`` does."""
    if guards.is_own(receiver) and not issubclass(type(receiver), (type, types.ModuleType)):
        return receiver  # all of it is guest code's; an object with slots has none
    return Door(guards.vars(receiver))


def _is_guests_code(guards: Guards, value: Any) -> bool:
    """Return whether a value is a guest function, bound or not; its code is checked for any arguments."""
    function = value.__func__ if type(value) is types.MethodType else value
    if type(function) is types.FunctionType and hook_guards.is_guarded(function):
        function = vars(function).get("__wrapped__")  # a hook of a class, behind one of our guards
    return guards.is_guest_function(function)


def _closure(guards: Guards, real: Any, make: Callable[..., Any], *subject: Any) -> Any:
    """Return the guard of a function: the same one each time, as ``A.__setattr__`` is the same each time."""
    if subject or type(real) not in _HELD:
        return named_after(make(guards, real, *subject), real)
    known = guards.closures.get((make, id(real)))
    if known is None:
        if len(guards.closures) > _MOST_CLOSURES:
            guards.closures.clear()
        # Kept with the real one, so that nothing else gets its id.
        known = guards.closures[make, id(real)] = real, named_after(make(guards, real), real)
    return known[1]


_HELD = frozenset({types.WrapperDescriptorType, types.FunctionType, types.BuiltinFunctionType})
"""Types of functions that a class holds; any other is made anew at each read."""


_MOST_CLOSURES = 256
"""Guards of functions that a session keeps."""


_C_CODE = (types.WrapperDescriptorType, types.MethodWrapperType, types.BuiltinFunctionType)


_UNBOUND = (types.WrapperDescriptorType, types.FunctionType)


_NAMED = (*_C_CODE, types.FunctionType, types.MethodType)


def named_after(function: Any, real: Any) -> Any:
    """Copy name, docstring and annotations of a real function to its guard."""
    if is_one_of(type(real), _NAMED):  # any other type may run code for its attributes
        function.__name__, function.__qualname__ = real.__name__, real.__qualname__
        function.__doc__, function.__module__ = real.__doc__, getattr(real, "__module__", None)
        function.__annotations__ = dict(getattr(real, "__annotations__", ()))
    return function


def init_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Refuse ``__init__`` of a host object: a second call changes even a frozen one."""
    if not issubclass(type(receiver), type):
        subject = super_self(receiver) if type(receiver) is super else receiver
        if _is_guests(guards, subject):
            return receiver
        raise refusal(receiver, name)
    if issubclass(receiver, types.ModuleType):
        raise refusal(receiver, name)  # it would rename a module that all sessions share
    real = host.getattr(receiver, name)
    # Return the checked function, not the class: a finalizer could delete the guest function meanwhile.
    is_harmless = real is object.__init__ or guards.is_guest_function(real)
    owner = next(part for part in mro_of(receiver) if name in namespace_of(part))
    make = _init if guards.classes.is_guest(owner) else _init_of_host
    return Door(real if is_harmless else _closure(guards, real, make))


def _init(guards: Guards, real: Callable[..., Any]) -> Callable[..., None]:
    def init(*args: Any, **kwargs: Any) -> None:
        if not args:  # an object passed by keyword would not be checked
            real()
        elif not _is_guests(guards, args[0]) and not _begins_anew(type(args[0])):
            raise refusal(args[0], "__init__")
        else:
            real(*args, **kwargs)

    return init


def _init_of_host(guards: Guards, real: Callable[..., Any]) -> Callable[..., None]:
    """Guard a host ``__init__``: its state in an instance of another class would be readable there."""
    init = _init(guards, real)

    def of_its_class(*args: Any, **kwargs: Any) -> None:
        if args and _is_guests(guards, args[0]) and not host_classes.answers(type(args[0]), "__init__", real):
            raise refusal(args[0], "__init__")
        init(*args, **kwargs)

    return of_its_class


def _is_guests(guards: Guards, subject: Any) -> bool:
    """Return whether an object is a guest class or a guest object, without a call of its code."""
    class_ = type(subject)
    return guards.classes.is_guest(subject if issubclass(class_, type) else class_)


def _begins_anew(class_: type) -> bool:
    """Return whether ``__init__`` of a class does no more than its other methods could do."""
    is_refilled = class_ in guest_type.PLAIN or class_ is bytearray or class_ is super
    return is_refilled or (issubclass(class_, BaseException) and host_classes.is_static(class_))


def replace_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard ``_replace`` of a guest named tuple, which calls ``_make`` of any object that it is given."""
    value = host.getattr(receiver, name)
    if type(value) is not types.FunctionType or guards.is_guest_function(value):
        return Door(value)

    def replace(*args: Any, **changes: Any) -> Any:
        if args and guards.policy.denies(type(args[0]), name):
            raise refusal(args[0], name)
        return value(*args, **changes)

    return Door(named_after(replace, value))


def own_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Refuse a name on all but guest classes, guest objects and ``super()`` in them."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    if not guards.is_own(subject) or (
        issubclass(type(subject), type) and not _is_defined(guards, subject, name)
    ):
        raise refusal(receiver, name)
    return receiver


def _is_defined(guards: Guards, class_: type, name: str) -> bool:
    """Return whether guest code wrote the member of a class: ``object.__getstate__`` takes any object."""
    for base in mro_of(class_):
        if name in namespace_of(base):
            return guards.classes.is_guest(base)
    return True


def inherited_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Refuse a name on all but guest classes and their objects."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    owner = subject if issubclass(type(subject), type) else type(subject)
    if guards.classes.is_guest(owner):
        return receiver
    raise refusal(receiver, name)


def get_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard ``__get__``: a property of the host reads private state of any object that it is given."""
    if issubclass(type(receiver), (types.MemberDescriptorType, types.GetSetDescriptorType, Inert)):
        raise refusal(receiver, name)
    if type(receiver) is types.MethodType and not guards.is_guest_function(receiver.__func__):
        return Door(lambda *args: receiver)  # up to Python 3.12 it would bind to the given object
    descriptor: Any = super_self(receiver) if issubclass(type(receiver), super) else receiver
    is_class = issubclass(type(descriptor), type)
    kind = descriptor if is_class else type(descriptor)
    if not issubclass(kind, classmethod) and not wrapped_functions.is_reader(kind):
        return receiver
    real = host.getattr(receiver, name)

    def get(*args: Any) -> Any:
        said = args if is_class else (descriptor, *args)
        if said and issubclass(type(said[0]), classmethod):
            if not _reads(
                guards, _behind(said[0]), None
            ):  # until Python 3.12 it calls __get__ of the inner one
                raise refusal(receiver, name)
        elif len(said) > 1 and said[1] is not None and not _reads(guards, *said[:2]):
            raise refusal(receiver, name)
        return real(*args)

    return Door(get)


def _reads(guards: Guards, descriptor: Any, instance: Any) -> bool:
    """Return whether a property is a guest property, or a member of the class of *instance*."""
    kind = type(descriptor)
    if issubclass(kind, property) and guards.is_guest_function(_FGET(descriptor)):
        return True
    if instance is not None and any(descriptor is held for _, held in guards.held.values()):
        return True  # it checks the object itself
    spaces = map(namespace_of, mro_of(type(instance)))
    is_member = any(value is descriptor for space in spaces for value in space.values())
    return is_member or not wrapped_functions.is_reader(kind)


def _behind(method: Any) -> Any:
    """Return the function or descriptor behind a class method."""
    while issubclass(type(method), classmethod):
        method = _METHOD(method)
    return method


_METHOD: Callable[[Any], Any] = vars(classmethod)["__func__"].__get__


_FGET: Callable[[Any], Any] = property.__dict__["fget"].__get__


def orig_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Refuse ``__orig_class__`` and ``__orig_bases__`` with a sealed class: its alias can be called."""
    value = host.getattr(receiver, name, None)
    for each in value if type(value) is tuple else (value,):
        origin = origin_of(each)
        if issubclass(type(origin), type) and guards.shown_class(origin) is not origin:
            raise refusal(receiver, name)
    return receiver


def wrapped_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return ``__wrapped__`` if guest code stored it, or if it is a guest function."""
    function = receiver.__func__ if type(receiver) is types.MethodType else receiver
    if guards.is_own(receiver) or guards.is_guest_function(function):
        return receiver  # guest code stored it
    value = host.getattr(receiver, name)
    if guards.is_guest_function(value):
        return Door(value)
    raise refusal(receiver, name)


def annotations_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return a copy of the annotations of a host object, as guest code may hold them."""
    if guards.is_own(receiver) or guards.is_guest_function(receiver):
        return receiver
    found = dict(host.getattr(receiver, name))
    return Door({key: guest_type.as_shown(value) for key, value in found.items()})


def new_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard ``__new__``: a class that it makes is checked, and a sealed class makes nothing."""
    real = host.getattr(receiver, name)
    return Door(real if guards.is_guest_function(real) else _closure(guards, real, _new))


def _new(guards: Guards, real: Callable[..., Any]) -> Callable[..., Any]:
    def new(*args: Any, **kwargs: Any) -> Any:
        cls: Any = args[0] if args else None
        rest = args[1:]
        if not issubclass(type(cls), type):
            return _failing(real, args, kwargs)
        if issubclass(cls, type):
            if len(rest) != 3:
                return _failing(real, args, kwargs)
            guards.classes.reconcile(cls, rest[1], rest[0])
            makes_new = is_one_of(type(real), (types.BuiltinFunctionType, types.FunctionType))
            return guards.classes.create(functools.partial(real, cls), makes_new, *rest, **kwargs)
        if issubclass(type(cls), LazyMeta):
            return cls(*rest, **kwargs)
        if issubclass(type(cls), sealed_classes.SealedMeta) or guards.policy.is_sealed(cls):
            raise SandboxTypeError(f"{cls.__name__} cannot be constructed here")
        return real(*args, **kwargs)

    return new


def _failing(real: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Raise the error for wrong arguments: C code raises its own; a Python function might accept them."""
    if is_one_of(type(real), _C_CODE):
        return real(*args, **kwargs)
    raise TypeError(f"{real.__name__}() was not given what it needs, got {len(args)} arguments")


def call_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard ``type.__call__``: a class that it makes is checked."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    if subject is receiver and not issubclass(type(receiver), type):
        return receiver
    value = host.getattr(receiver, name)
    if value is type.__call__:
        return Door(guest_type.call)
    if type(value) is types.MethodWrapperType and is_metaclass(subject):
        return Door(functools.partial(guest_type.call, subject))
    return Door(value)


def accessor_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard ``object.__setattr__`` and its kin: the name is checked, then the real one is called."""
    real = host.getattr(receiver, name)
    if _is_guests_code(guards, real):
        return Door(real)
    is_unbound = issubclass(type(receiver), type) or is_one_of(type(real), _UNBOUND)
    subject = super_self(receiver) if type(receiver) is super else receiver
    return Door(_closure(guards, real, _ACCESSORS[name], *(() if is_unbound else (subject,))))


def _accessor(name: str, size: int) -> Callable[..., Callable[..., Any]]:
    """Return a maker of guards for an accessor of *size* arguments, bound to *subject* or unbound."""

    def make(guards: Guards, real: Callable[..., Any], *subject: Any) -> Callable[..., Any]:
        def access(*args: Any, **kwargs: Any) -> Any:
            if len(subject) + len(args) != size or kwargs:
                return _failing(real, args, kwargs)
            target, key, *rest = *subject, *args
            key = exact_name(key)
            if _goes_round(guards, target, name, real):
                raise SandboxAttributeError(
                    f"{described(target)} decides itself about its attributes; write x.{key}, not {name}()"
                )
            if name != "__getattribute__":
                guards.check_storable(target, key)
                if guards.check_store(target, key) is not target:
                    raise refusal(target, key)
            elif key == "__class__":  # the door would call the __getattribute__ that calls here
                return guest_type.type_of(target)
            elif guards.readable(target, key) is not target:
                return guards.getattr(target, key)
            return real(key, *rest) if subject else real(target, key, *rest)

        return access

    return make


_ACCESSORS = {
    "__getattribute__": _accessor("__getattribute__", 2),
    "__setattr__": _accessor("__setattr__", 3),
    "__delattr__": _accessor("__delattr__", 2),
}


def _goes_round(guards: Guards, target: Any, name: str, real: Any) -> bool:
    """Return whether an accessor is not that of the host class: it would bypass a frozen class."""
    if _is_guests(guards, target):
        return False
    spaces = map(namespace_of, mro_of(type(target)))
    found = next(space[name] for space in spaces if name in space)
    # The interpreter guards C code itself, and C code holds no rules of a program.
    return type(found) is not types.WrapperDescriptorType and found is not getattr(real, "__func__", real)
