"""Doors: what a contested name gives on the receivers that may not answer it themselves.

A door function gets the session's guards, the receiver and the name. It returns what the
attribute is then read from, or raises. One function, one verdict.
"""

from __future__ import annotations

import builtins as host
import functools
import string
import types
from collections import UserString
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import module_of, mro_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.classes import abc_register as abstract
from agex.sandbox.classes import class_registry as classes
from agex.sandbox.classes import generic_classes as generic
from agex.sandbox.classes import hook_guards as answers
from agex.sandbox.classes import host_classes as hostclass
from agex.sandbox.classes import lru_caches as memoized
from agex.sandbox.classes import namespace as members
from agex.sandbox.classes import sealed as sealing
from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.classes.errors import described, exact_name, refusal
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.classes.inert import Inert
from agex.sandbox.classes.lazy_meta import LazyMeta
from agex.sandbox.classes.super_lookup import TABLES, super_answers, super_self
from agex.sandbox.guards import led_to
from agex.sandbox.guards import wrapped_functions as called
from agex.sandbox.guards.door import Door
from agex.sandbox.patches import stdlib_caches as caches
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import asyncio_cleanup as callbacks
from agex.sandbox.stdlib import datetime as dates
from agex.sandbox.stdlib import string_format as formatting
from agex.sandbox.stdlib.generic_alias import origin_of

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["DOORS"]


def _format_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``str.format``, by whatever way it is reached: a subclass, ``super()``, a generic alias."""
    if type(receiver) is str and formatting.is_plain_format(receiver):
        return receiver  # no field walks an attribute: the real method, at its own speed
    value = host.getattr(receiver, name)
    safe = formatting.safe_format if name == "format" else formatting.safe_format_map
    if type(value) is types.BuiltinMethodType and isinstance(value.__self__, str):
        return Door(functools.partial(safe, guards.getattr, value.__self__))
    if value is str.format or value is str.format_map:
        return Door(functools.partial(safe, guards.getattr))
    function = value.__func__ if type(value) is types.MethodType else value
    if function is UserString.format or function is UserString.format_map:
        raise SandboxAttributeError(f"UserString.{name} is not accessible; use str(text).{name}(...)")
    return Door(value)


def _formatter_door(guards: Guards, receiver: Any, name: str) -> Any:
    class_ = type(receiver)
    if issubclass(class_, string.Formatter) and not issubclass(class_, formatting.SafeFormatter):
        raise refusal(receiver, name)
    return receiver


def _obj_door(guards: Guards, receiver: Any, name: str) -> Any:
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    if issubclass(subject, (AttributeError, memoryview)):  # a read-only view has what can be written
        raise refusal(receiver, name)
    return receiver


def _graph_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``__mro__``, ``__bases__``, ``__base__``, ``mro``: not of a metaclass, whose graph ends at ``type``.

    Nor of a class that stands in for one of the host's: behind it is the real one.
    """
    subject = origin_of(super_self(receiver) if type(receiver) is super else receiver)
    if _is_metaclass(subject):
        raise refusal(receiver, name)
    if issubclass(type(subject), type):
        for part in mro_of(subject):
            if instead.is_stand_in(part) or guards.shown_class(instead.shown(part)) is not part:
                raise refusal(receiver, name)
    return receiver


def _shown_door(guards: Guards, receiver: Any, name: str) -> Any:
    """What typing keeps of an annotation: a metaclass in it is shown as the guest's own ``type``."""
    if guards.is_own(receiver):
        return receiver
    value = host.getattr(receiver, name)
    return Door(classes.as_shown(value))


def _loop_door(guards: Guards, receiver: Any, name: str) -> Any:
    """What asyncio's objects know of the host: the loop, its threads, the frames of tasks."""
    if type(receiver) is types.ModuleType and name not in vars(receiver):
        return receiver  # the copy has no such member, and the error says what to write
    if _is_asyncios(guards, receiver):
        raise refusal(receiver, name)
    return receiver


def _callback_door(guards: Guards, receiver: Any, name: str) -> Any:
    if not _is_asyncios(guards, receiver):
        return receiver
    if issubclass(type(receiver), type):
        raise refusal(receiver, name)
    real = host.getattr(receiver, name)
    make: Any = callbacks.adding if name == "add_done_callback" else callbacks.removing
    return Door(_named_after(make(guards, real), real))


def _is_asyncios(guards: Guards, receiver: Any) -> bool:
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    if issubclass(type(receiver), types.ModuleType):
        modules = [receiver.__name__]
    else:  # an event loop may have futures of a class of its own
        modules = [str(part.__module__) for part in mro_of(subject)]
    homes = (module.lstrip("_").partition(".")[0] for module in modules)
    return not guards.is_own(receiver) and not {"asyncio", "concurrent"}.isdisjoint(homes)


def _zone_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``ZoneInfo.clear_cache``: the cache is the host's. ``from_file``: C code believes what the file says.

    The zones are of the real class, whose ``no_cache`` they would give.
    """
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    if not any(str(module_of(part)).startswith("zoneinfo") for part in mro_of(subject)):
        return receiver
    if name != "no_cache":
        raise refusal(receiver, name)
    return Door(caches.zone_members()["ZoneInfo"].no_cache)


def _alias_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``super().__class_getitem__``: calls of what the interpreter's own makes write to what they give."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    owner = subject if issubclass(type(subject), type) else type(subject)
    maker = super_answers(receiver, name) if type(receiver) is super else owner
    is_plain = generic.is_plain(maker) and guards.is_own(owner)
    return Door(functools.partial(generic.Alias, owner)) if is_plain else receiver


def _ctime_door(guards: Guards, receiver: Any, name: str) -> Any:
    return Door(dates.looked_at(host.getattr(receiver, name)))


def _is_metaclass(subject: Any) -> bool:
    return issubclass(type(subject), type) and issubclass(subject, type)


def _register_door(guards: Guards, receiver: Any, name: str) -> Any:
    subject = super_self(receiver) if type(receiver) is super else origin_of(receiver)
    if not issubclass(type(subject), type):
        if hostclass.is_dispatcher(subject):
            raise refusal(receiver, name)
        return receiver
    is_own = guards.classes.is_guest(subject) and not _is_metaclass(subject)
    if not is_own or members.is_over_abstract(mro_of(subject)):
        raise refusal(receiver, name)
    return Door(abstract.registering(guards, host.getattr(receiver, name)))


def _registry_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``registry`` of a dispatcher: a view hands the table to the ``__eq__`` of what it meets."""
    if type(receiver) is not types.FunctionType:
        return receiver
    value = host.getattr(receiver, name)
    return Door(types.MappingProxyType(dict(value)) if type(value) is types.MappingProxyType else value)


def _class_door(guards: Guards, receiver: Any, name: str) -> Any:
    if guards.is_own(receiver) and not issubclass(type(receiver), type):
        spaces = map(namespace_of, mro_of(type(receiver)))
        answers = next(space["__getattribute__"] for space in spaces if "__getattribute__" in space)
        if _is_guests_code(guards, answers):  # a proxy shows itself as what it stands for
            return Door(classes.as_shown(host.getattr(receiver, name)))
    return Door(classes.type_of(receiver))


def _dict_door(guards: Guards, receiver: Any, name: str) -> Any:
    if guards.is_own(receiver) and not issubclass(type(receiver), (type, types.ModuleType)):
        return receiver  # it is all the guest's; and an object with slots has none
    return Door(guards.vars(receiver))


def _is_guests_code(guards: Guards, value: Any) -> bool:
    """Tell whether *value* is a function of the guest, bound or not: whatever it is given, it is checked."""
    function = value.__func__ if type(value) is types.MethodType else value
    if type(function) is types.FunctionType and answers.is_guarded(function):
        function = vars(function).get("__wrapped__")  # a hook of a class, which is called through one of ours
    return guards.is_guest_function(function)


def _closure(guards: Guards, real: Any, make: Callable[..., Any], *subject: Any) -> Any:
    """Give the function that stands for *real*: the same one each time, as ``A.__setattr__`` is."""
    if subject or type(real) not in _HELD:
        return _named_after(make(guards, real, *subject), real)
    known = guards.closures.get((make, id(real)))
    if known is None:
        if len(guards.closures) > _MOST_CLOSURES:
            guards.closures.clear()
        # With the real one, whose id nothing else can have then.
        known = guards.closures[make, id(real)] = real, _named_after(make(guards, real), real)
    return known[1]


_HELD = frozenset({types.WrapperDescriptorType, types.FunctionType, types.BuiltinFunctionType})
"""The kinds of functions that a class holds; any other is made anew each time that it is read."""

_MOST_CLOSURES = 256
"""Functions that stand for others, kept by a session."""

_C_CODE = (types.WrapperDescriptorType, types.MethodWrapperType, types.BuiltinFunctionType)
_UNBOUND = (types.WrapperDescriptorType, types.FunctionType)
_NAMED = (*_C_CODE, types.FunctionType, types.MethodType)


def _named_after(function: Any, real: Any) -> Any:
    """Let what stands for *real* show itself as that."""
    if is_one_of(type(real), _NAMED):  # else it is to be asked
        function.__name__, function.__qualname__ = real.__name__, real.__qualname__
        function.__doc__, function.__module__ = real.__doc__, getattr(real, "__module__", None)
        function.__annotations__ = dict(getattr(real, "__annotations__", ()))
    return function


def _init_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``__init__`` once more would change an object of the host, even a frozen one."""
    if not issubclass(type(receiver), type):
        subject = super_self(receiver) if type(receiver) is super else receiver
        if _is_guests(guards, subject):
            return receiver
        raise refusal(receiver, name)
    if issubclass(receiver, types.ModuleType):
        raise refusal(receiver, name)  # it would name a module anew that all sessions share
    real = host.getattr(receiver, name)
    # What was looked at, not the class: a collection may close a file, and that take away the guest's own.
    is_harmless = real is object.__init__ or guards.is_guest_function(real)
    owner = next(part for part in mro_of(receiver) if name in namespace_of(part))
    make = _init if guards.classes.is_guest(owner) else _init_of_host
    return Door(real if is_harmless else _closure(guards, real, make))


def _init(guards: Guards, real: Callable[..., Any]) -> Callable[..., None]:
    def init(*args: Any, **kwargs: Any) -> None:
        if not args:  # an object given by its name would not have been looked at
            real()
        elif not _is_guests(guards, args[0]) and not _begins_anew(type(args[0])):
            raise refusal(args[0], "__init__")
        else:
            real(*args, **kwargs)

    return init


def _init_of_host(guards: Guards, real: Callable[..., Any]) -> Callable[..., None]:
    """What a class of the host's puts into an object of another class, anybody could read there."""
    init = _init(guards, real)

    def of_its_class(*args: Any, **kwargs: Any) -> None:
        if args and _is_guests(guards, args[0]) and not hostclass.answers(type(args[0]), "__init__", real):
            raise refusal(args[0], "__init__")
        init(*args, **kwargs)

    return of_its_class


def _is_guests(guards: Guards, subject: Any) -> bool:
    """Tell whether *subject* is a class of the guest's or an object of one; its own code is not asked."""
    class_ = type(subject)
    return guards.classes.is_guest(subject if issubclass(class_, type) else class_)


def _begins_anew(class_: type) -> bool:
    """Tell whether ``__init__`` does to an object of *class_* nothing that its other methods would not."""
    is_refilled = class_ in classes.PLAIN or class_ is bytearray or class_ is super
    return is_refilled or (issubclass(class_, BaseException) and hostclass.is_static(class_))


def _replace_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``_replace`` of a named tuple of the guest's: it has whatever it is given make another of itself."""
    value = host.getattr(receiver, name)
    if type(value) is not types.FunctionType or guards.is_guest_function(value):
        return Door(value)

    def replace(*args: Any, **changes: Any) -> Any:
        if args and guards.policy.denies(type(args[0]), name):
            raise refusal(args[0], name)
        return value(*args, **changes)

    return Door(_named_after(replace, value))


def _own_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Names that only the guest's own classes and objects, or ``super()`` in them, may answer."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    if not guards.is_own(subject) or (
        issubclass(type(subject), type) and not _is_defined(guards, subject, name)
    ):
        raise refusal(receiver, name)
    return receiver


def _is_defined(guards: Guards, class_: type, name: str) -> bool:
    """Tell whether the guest wrote what *class_* answers: ``object.__getstate__`` takes any object."""
    for base in mro_of(class_):
        if name in namespace_of(base):
            return guards.classes.is_guest(base)
    return True


def _copy_door(guards: Guards, receiver: Any, name: str) -> Any:
    """A class's tables, as a copy: a proxy hands the real one to the ``__eq__`` of whatever it meets."""
    table = dict(host.getattr(receiver, name))
    if name == "__dataclass_fields__" and not guards.is_own(receiver):
        from agex.sandbox.stdlib import dataclass_fields

        table = {key: dataclass_fields.shown_field(field) for key, field in table.items()}
    return Door(table)


def _shared_door(guards: Guards, receiver: Any, name: str) -> Any:
    """A table that a class of the standard library holds for the whole process, as a copy."""
    value = host.getattr(receiver, name)
    return Door(value.copy()) if caches.is_shared(name, value) else receiver


def _table_door(guards: Guards, receiver: Any, name: str) -> Any:
    """A table that a class has for its own use, as a copy, unless the class is the guest's."""
    value = host.getattr(receiver, name)
    return Door(value.copy()) if type(value) in TABLES and not guards.is_own(receiver) else receiver


def _inherited_door(guards: Guards, receiver: Any, name: str) -> Any:
    subject = super_self(receiver) if type(receiver) is super else receiver
    owner = subject if issubclass(type(subject), type) else type(subject)
    if guards.classes.is_guest(owner):
        return receiver
    raise refusal(receiver, name)


def _get_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``__get__``: a property of the host's reads the private state of whatever object it is given."""
    if issubclass(type(receiver), (types.MemberDescriptorType, types.GetSetDescriptorType, Inert)):
        raise refusal(receiver, name)
    if type(receiver) is types.MethodType and not guards.is_guest_function(receiver.__func__):
        return Door(lambda *args: receiver)  # up to Python 3.12 it would be of the object that it is given
    descriptor: Any = super_self(receiver) if issubclass(type(receiver), super) else receiver
    is_class = issubclass(type(descriptor), type)
    kind = descriptor if is_class else type(descriptor)
    if not issubclass(kind, classmethod) and not called.is_reader(kind):
        return receiver
    real = host.getattr(receiver, name)

    def get(*args: Any) -> Any:
        said = args if is_class else (descriptor, *args)
        if said and issubclass(type(said[0]), classmethod):
            if not _reads(guards, _behind(said[0]), None):  # until Python 3.12 it reads, of anything
                raise refusal(receiver, name)
        elif len(said) > 1 and said[1] is not None and not _reads(guards, *said[:2]):
            raise refusal(receiver, name)
        return real(*args)

    return Door(get)


def _reads(guards: Guards, descriptor: Any, instance: Any) -> bool:
    """Tell whether a property is the guest's, or a member of the class of *instance*."""
    kind = type(descriptor)
    if issubclass(kind, property) and guards.is_guest_function(_FGET(descriptor)):
        return True
    if instance is not None and any(descriptor is held for _, held in guards.held.values()):
        return True  # it looks at the object itself
    spaces = map(namespace_of, mro_of(type(instance)))
    is_member = any(value is descriptor for space in spaces for value in space.values())
    return is_member or not called.is_reader(kind)


def _behind(method: Any) -> Any:
    """Give what a class method is made of."""
    while issubclass(type(method), classmethod):
        method = _METHOD(method)
    return method


_METHOD: Callable[[Any], Any] = vars(classmethod)["__func__"].__get__
_FGET: Callable[[Any], Any] = property.__dict__["fget"].__get__


def _orig_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``__orig_class__`` and ``__orig_bases__``: an alias of a sealed class can be called."""
    value = host.getattr(receiver, name, None)
    for each in value if type(value) is tuple else (value,):
        origin = origin_of(each)
        if issubclass(type(origin), type) and guards.shown_class(origin) is not origin:
            raise refusal(receiver, name)
    return receiver


def _wrapped_door(guards: Guards, receiver: Any, name: str) -> Any:
    function = receiver.__func__ if type(receiver) is types.MethodType else receiver
    if guards.is_own(receiver) or guards.is_guest_function(function):
        return receiver  # it was the guest that stored it
    value = host.getattr(receiver, name)
    if guards.is_guest_function(value):
        return Door(value)
    raise refusal(receiver, name)


def _annotations_door(guards: Guards, receiver: Any, name: str) -> Any:
    if guards.is_own(receiver) or guards.is_guest_function(receiver):
        return receiver
    found = dict(host.getattr(receiver, name))
    return Door({key: classes.as_shown(value) for key, value in found.items()})


def _new_door(guards: Guards, receiver: Any, name: str) -> Any:
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
        if issubclass(type(cls), sealing.SealedMeta) or guards.policy.is_sealed(cls):
            raise SandboxTypeError(f"{cls.__name__} cannot be constructed here")
        return real(*args, **kwargs)

    return new


def _failing(real: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Have what is written in C say what is wrong with its arguments; a program might take them."""
    if is_one_of(type(real), _C_CODE):
        return real(*args, **kwargs)
    raise TypeError(f"{real.__name__}() was not given what it needs, got {len(args)} arguments")


def _call_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``type.__call__``: what it makes is checked, by whatever way it is reached."""
    subject = super_self(receiver) if type(receiver) is super else receiver
    if subject is receiver and not issubclass(type(receiver), type):
        return receiver
    value = host.getattr(receiver, name)
    if value is type.__call__:
        return Door(classes.call)
    if type(value) is types.MethodWrapperType and _is_metaclass(subject):
        return Door(functools.partial(classes.call, subject))
    return Door(value)


def _accessor_door(guards: Guards, receiver: Any, name: str) -> Any:
    """``object.__setattr__`` and its kin: the real one, after the check of the name it is given."""
    real = host.getattr(receiver, name)
    if _is_guests_code(guards, real):
        return Door(real)
    is_unbound = issubclass(type(receiver), type) or is_one_of(type(real), _UNBOUND)
    subject = super_self(receiver) if type(receiver) is super else receiver
    return Door(_closure(guards, real, _ACCESSORS[name], *(() if is_unbound else (subject,))))


def _accessor(name: str, size: int) -> Callable[..., Callable[..., Any]]:
    """Make what guards an accessor, which takes *size* arguments; *subject* is what it is bound to."""

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
            elif key == "__class__":  # the door would ask the class that asks here
                return classes.type_of(target)
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
    """Tell whether *real* is not what the class of the host has for this: a frozen one would not be asked."""
    if _is_guests(guards, target):
        return False
    spaces = map(namespace_of, mro_of(type(target)))
    found = next(space[name] for space in spaces if name in space)
    # What is written in C the interpreter guards itself, and it has no rules of a program.
    return type(found) is not types.WrapperDescriptorType and found is not getattr(real, "__func__", real)


DOORS: dict[str, Callable[[Guards, Any, str], Any]] = {
    **dict.fromkeys(ledger.MODULES, led_to.module_door),
    "format": _format_door,
    "format_map": _format_door,
    "vformat": _formatter_door,
    "get_field": _formatter_door,
    "obj": _obj_door,
    "fget": called.function_door,
    "fset": called.function_door,
    "fdel": called.function_door,
    "func": called.function_door,
    "_replace": _replace_door,
    "mro": _graph_door,
    "register": _register_door,
    "registry": _registry_door,
    "__mro__": _graph_door,
    "__bases__": _graph_door,
    "__base__": _graph_door,
    "__class__": _class_door,
    "__dict__": _dict_door,
    "__call__": _call_door,
    "__init__": _init_door,
    "__new__": _new_door,
    "__init_subclass__": _inherited_door,
    "__set_name__": _own_door,
    "__get__": _get_door,
    "__set__": _own_door,
    "__delete__": _own_door,
    "__getattr__": _own_door,
    "__getattribute__": _accessor_door,
    "__setattr__": _accessor_door,
    "__delattr__": _accessor_door,
    "__wrapped__": _wrapped_door,
    "__dir__": _own_door,
    "__getstate__": _own_door,
    "__setstate__": _own_door,
    "__subclasshook__": _own_door,
    "__annotations__": _annotations_door,
    "__origin__": _shown_door,
    "__args__": _shown_door,
    "__orig_bases__": _orig_door,
    "__orig_class__": _orig_door,
    "__bound__": _shown_door,
    "__constraints__": _shown_door,
    "__supertype__": _shown_door,
    "__default__": _shown_door,
    "__metadata__": _shown_door,
    "__value__": _shown_door,
    "get_loop": _loop_door,
    "get_stack": _loop_door,
    "print_stack": _loop_door,
    "get_coro": _loop_door,
    "get_context": _loop_door,
    "get_event_loop": _loop_door,
    "get_running_loop": _loop_door,
    "add_done_callback": _callback_door,
    "remove_done_callback": _callback_door,
    "cache_clear": memoized.clear_door,
    "clear_cache": _zone_door,
    "ctime": _ctime_door,
    "from_file": _zone_door,
    "no_cache": _zone_door,
    "__class_getitem__": _alias_door,
    "cssclasses": _shared_door,
    "cssclasses_weekday_head": _shared_door,
    "unicode_whitespace_trans": _shared_door,
    "_field_defaults": _table_door,
    "__slots__": _table_door,
    "__members__": _copy_door,
    "__dataclass_fields__": _copy_door,
}
