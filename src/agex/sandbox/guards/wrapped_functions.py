"""The functions behind partials, context managers and properties.

A public wrapper may lead to a function that guest code may not read: ``get = partialmethod(_ask, "G")`` leads
to ``_ask``, and a context manager to a function that takes any object for its ``self``. So guest code gets
guest functions only, and those that it could have named.
"""

from __future__ import annotations

import builtins as host
import contextlib
import functools
import sys
import types
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxAttributeError
from agex.sandbox.classes import guest_type, host_classes, stand_ins
from agex.sandbox.classes.errors import refusal
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.guards.receivers import Door
from agex.sandbox.rules import names
from agex.sandbox.runtime import provenance

if TYPE_CHECKING:
    from agex.sandbox.guards.guards import Guards

__all__ = ["READERS", "function_door", "is_reader"]

READERS = (property, functools.cached_property)
_MANAGER: type = contextlib._GeneratorContextManagerBase  # pyright: ignore[reportPrivateUsage]
_CALLERS = (
    functools.partial,
    functools.partialmethod,
    functools.singledispatchmethod,
    _MANAGER,
)


def is_reader(class_: type) -> bool:
    """Return whether ``__get__`` of the instances is host code, which reads any object that it is given."""
    if issubclass(class_, READERS):
        return True
    part = next((part for part in mro_of(class_) if "__get__" in namespace_of(part)), object)
    if type(namespace_of(part).get("__get__")) is not types.FunctionType or provenance.is_guest_class(part):
        return False
    return not (stand_ins.is_ours(part) or host_classes.is_standard(part, host_classes.STANDARD_BASES))


def function_door(guards: Guards, receiver: Any, name: str) -> Any:
    """Guard ``property.fset``, ``partial.func`` and their kin."""
    class_ = type(receiver)
    if not issubclass(class_, (*READERS, *_CALLERS)):
        return receiver
    value = host.getattr(receiver, name)
    if issubclass(class_, READERS):  # a host function would take any object for ``self``
        is_open = type(value) is not types.FunctionType or guards.is_guest_function(value)
    else:
        is_open = name != "func" or _could_name(guards, value)
    if not is_open:
        raise refusal(receiver, name)
    return receiver if is_one_of(class_, _CALLERS) else Door(guest_type.as_shown(value))


def _could_name(guards: Guards, value: Any) -> bool:
    """Return whether guest code could have read a function from its class or module."""
    if type(value) is types.MethodType:
        return guards.is_guest_function(value.__func__) or _is_readable(
            guards, value.__self__, value.__func__
        )
    if type(value) is types.FunctionType:
        return guards.is_guest_function(value) or _is_public(guards, value)
    is_of_module = type(value) is types.BuiltinFunctionType and type(value.__self__) is types.ModuleType
    return not is_of_module or _is_public(guards, value)


def _is_readable(guards: Guards, subject: Any, function: Any) -> bool:
    """Return whether a method may be read from *subject* by one of its names in the class."""
    parts = mro_of(subject if issubclass(type(subject), type) else type(subject))
    for name in [
        name for part in parts for name, value in namespace_of(part).items() if _behind(value) is function
    ]:
        with contextlib.suppress(SandboxAttributeError):
            guards.readable(subject, name)
            return True
    return False


def _behind(member: Any) -> Any:
    return member.__func__ if type(member) is classmethod else member


def _is_public(guards: Guards, function: Any) -> bool:
    """Return whether a function was granted, or has a public name in a granted package."""
    policy, name = guards.policy, function.__name__
    if any(function is granted for granted in policy.names.values()):
        return True
    if vars(host).get(name) is function:
        return guards.builtins.get(name) is function
    path = f"{function.__module__}.{function.__qualname__}".split(".")
    root = path[0].lstrip("_")
    grants = [grant for grant in list(policy.modules.values()) if grant.root == root]
    if root in sys.stdlib_module_names:  # the grant leaves out some members
        return any(vars(grant.copy()).get(name) is function for grant in grants)
    return bool(grants) and not any(map(names.is_private, path[1:]))
