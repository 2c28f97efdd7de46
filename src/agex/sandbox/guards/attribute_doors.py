"""Doors: functions that decide about a contested name on receivers which may not answer it themselves.

A door function gets the guards of the session, the receiver and the name. It returns the object that the
attribute is read from, or raises. One function, one verdict. Those for names of classes are in
`agex.sandbox.guards.class_doors`.
"""

from __future__ import annotations

import builtins as host
import functools
import string
import types
from collections import UserString
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from agex._interpreter.type_slots import module_of, mro_of
from agex.errors import SandboxAttributeError
from agex.sandbox.classes import abc_register, guest_type, host_classes, lru_caches, namespace
from agex.sandbox.classes.errors import refusal
from agex.sandbox.classes.super_lookup import TABLES, super_self
from agex.sandbox.guards import class_doors, wrapped_functions
from agex.sandbox.guards.receivers import Door
from agex.sandbox.patches import stdlib_caches
from agex.sandbox.policy.library_members import member_door
from agex.sandbox.rules import names
from agex.sandbox.runtime import asyncio_cleanup
from agex.sandbox.stdlib import datetime, string_format
from agex.sandbox.stdlib.generic_alias import origin_of

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["DOORS"]


def _format_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard ``str.format``, also through a subclass, ``super()`` or a generic alias."""
    if type(receiver) is str and string_format.is_plain_format(receiver):
        return receiver  # no field reads an attribute: the real method is faster
    value = host.getattr(receiver, name)
    safe = string_format.safe_format if name == "format" else string_format.safe_format_map
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
    if issubclass(class_, string.Formatter) and not issubclass(class_, string_format.SafeFormatter):
        raise refusal(receiver, name)
    return receiver


def _obj_door(guards: Guards, receiver: Any, name: str) -> Any:
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    if issubclass(subject, (AttributeError, memoryview)):  # a read-only view leads to the writable object
        raise refusal(receiver, name)
    return receiver


def _shown_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Show a metaclass in the attributes of ``typing`` objects by its stand-in."""
    if guards.is_own(receiver):
        return receiver
    value = host.getattr(receiver, name)
    return Door(guest_type.as_shown(value))


def _loop_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Refuse attributes of asyncio's objects that lead to the host: the loop, its threads, task frames."""
    if type(receiver) is types.ModuleType and name not in vars(receiver):
        return receiver  # the copy has no such member, and the error gives advice
    if _is_asyncios(guards, receiver):
        raise refusal(receiver, name)
    return receiver


def _callback_door(guards: Guards, receiver: Any, name: str) -> Any:
    if not _is_asyncios(guards, receiver):
        return receiver
    if issubclass(type(receiver), type):
        raise refusal(receiver, name)
    real = host.getattr(receiver, name)
    make: Any = asyncio_cleanup.adding if name == "add_done_callback" else asyncio_cleanup.removing
    return Door(class_doors.named_after(make(guards, real), real))


def _is_asyncios(guards: Guards, receiver: Any) -> bool:
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    if issubclass(type(receiver), types.ModuleType):
        modules = [receiver.__name__]
    else:  # an event loop may have its own class of futures
        modules = [str(part.__module__) for part in mro_of(subject)]
    homes = (module.lstrip("_").partition(".")[0] for module in modules)
    return not guards.is_own(receiver) and not {"asyncio", "concurrent"}.isdisjoint(homes)


def _zone_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard three methods of ``ZoneInfo``: the cache belongs to the host, and C code trusts a file.

    Zones are of the real class and would answer with its ``no_cache``.
    """
    subject = receiver if issubclass(type(receiver), type) else type(receiver)
    if not any(str(module_of(part)).startswith("zoneinfo") for part in mro_of(subject)):
        return receiver
    if name != "no_cache":
        raise refusal(receiver, name)
    return Door(stdlib_caches.zone_members()["ZoneInfo"].no_cache)


def _ctime_door(guards: Guards, receiver: Any, name: str) -> Any:
    return Door(datetime.looked_at(host.getattr(receiver, name)))


def _register_door(guards: Guards, receiver: Any, name: str) -> Any:
    subject = super_self(receiver) if type(receiver) is super else origin_of(receiver)
    if not issubclass(type(subject), type):
        if host_classes.is_dispatcher(subject):
            raise refusal(receiver, name)
        return receiver
    is_own = guards.classes.is_guest(subject) and not class_doors.is_metaclass(subject)
    if not is_own or namespace.is_over_abstract(mro_of(subject)):
        raise refusal(receiver, name)
    return Door(abc_register.registering(guards, host.getattr(receiver, name)))


def _registry_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return ``registry`` of a dispatcher as a copy: ``==`` of a view hands the table to an operand."""
    if type(receiver) is not types.FunctionType:
        return receiver
    value = host.getattr(receiver, name)
    return Door(types.MappingProxyType(dict(value)) if type(value) is types.MappingProxyType else value)


def _copy_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return a copy of a table of a class: ``==`` of a proxy hands the real one to the other operand."""
    table = dict(host.getattr(receiver, name))
    if name == "__dataclass_fields__" and not guards.is_own(receiver):
        from agex.sandbox.stdlib import dataclass_fields

        table = {key: dataclass_fields.shown_field(field) for key, field in table.items()}
    return Door(table)


def _shared_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return a copy of a table that a class of the standard library holds for the whole process."""
    value = host.getattr(receiver, name)
    return Door(value.copy()) if stdlib_caches.is_shared(name, value) else receiver


def _table_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Return a copy of a table that a host class has for its own use."""
    value = host.getattr(receiver, name)
    return Door(value.copy()) if type(value) in TABLES and not guards.is_own(receiver) else receiver


def _module_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Read an attribute, and refuse it where it is a module that was not registered.

    ``path.parser`` is ``posixpath``, which has the real ``os``. A class may keep ``re``, which leads to
    ``sys``. A strict policy asks for every attribute; any other for the names that modules have.
    """
    given = member_door(guards, receiver, name)
    if given is not receiver:
        return given
    value = host.getattr(receiver, name)
    if issubclass(type(value), types.ModuleType):
        guards.check_module(value)
    return Door(value)


_Door: TypeAlias = Callable[["Guards", Any, str], Any]


def _after_policy(door: _Door) -> _Door:
    """Return the door for a name that a library may use for a member of its own: its policy comes first.

    `Styler.format` of pandas fills in text as ``str.format`` does, and its policy looks at that text.
    """

    def of_policy_or_name(guards: Guards, receiver: Any, name: str) -> Any:
        given = receiver if type(receiver) is str else member_door(guards, receiver, name)
        return door(guards, receiver, name) if given is receiver else given

    return of_policy_or_name


_PUBLIC: dict[str, _Door] = {
    "format": _format_door,
    "format_map": _format_door,
    "vformat": _formatter_door,
    "get_field": _formatter_door,
    "obj": _obj_door,
    "fget": wrapped_functions.function_door,
    "fset": wrapped_functions.function_door,
    "fdel": wrapped_functions.function_door,
    "func": wrapped_functions.function_door,
    "mro": class_doors.graph_door,
    "register": _register_door,
    "registry": _registry_door,
}
DOORS: dict[str, _Door] = {
    **dict.fromkeys(names.MODULES, _module_door),
    **{name: _after_policy(door) for name, door in _PUBLIC.items()},
    "_replace": class_doors.replace_door,
    "__mro__": class_doors.graph_door,
    "__bases__": class_doors.graph_door,
    "__base__": class_doors.graph_door,
    "__class__": class_doors.class_door,
    "__dict__": class_doors.dict_door,
    "__call__": class_doors.call_door,
    "__init__": class_doors.init_door,
    "__new__": class_doors.new_door,
    "__init_subclass__": class_doors.inherited_door,
    "__set_name__": class_doors.own_door,
    "__get__": class_doors.get_door,
    "__set__": class_doors.own_door,
    "__delete__": class_doors.own_door,
    "__getattr__": class_doors.own_door,
    "__getattribute__": class_doors.accessor_door,
    "__setattr__": class_doors.accessor_door,
    "__delattr__": class_doors.accessor_door,
    "__wrapped__": class_doors.wrapped_door,
    "__dir__": class_doors.own_door,
    "__getstate__": class_doors.own_door,
    "__setstate__": class_doors.own_door,
    "__subclasshook__": class_doors.own_door,
    "__annotations__": class_doors.annotations_door,
    "__origin__": _shown_door,
    "__args__": _shown_door,
    "__orig_bases__": class_doors.orig_door,
    "__orig_class__": class_doors.orig_door,
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
    "cache_clear": lru_caches.clear_door,
    "clear_cache": _zone_door,
    "ctime": _ctime_door,
    "from_file": _zone_door,
    "no_cache": _zone_door,
    "__class_getitem__": class_doors.alias_door,
    "cssclasses": _shared_door,
    "cssclasses_weekday_head": _shared_door,
    "unicode_whitespace_trans": _shared_door,
    "_field_defaults": _table_door,
    "__slots__": _table_door,
    "__members__": _copy_door,
    "__dataclass_fields__": _copy_door,
}
