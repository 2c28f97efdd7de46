"""The namespace of a class of the guest's, as ``vars(class_)`` shows it."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agex.sandbox import doors, rawmemory
from agex.typeslots import namespace_of

if TYPE_CHECKING:
    from agex.sandbox.guards import Guards

__all__ = ["shown_namespace"]


def shown_namespace(guards: Guards, class_: type) -> Mapping[str, Any]:
    """Give the names of a class: a copy, because a proxy can be made to tell what it views."""
    names = {
        name: _shown(guards, class_, name, value)
        for name, value in namespace_of(class_).items()
        if name not in rawmemory.NAMES
    }
    if type(fields := names.get("__dataclass_fields__")) is dict:
        names["__dataclass_fields__"] = dict(fields)
    return types.MappingProxyType(names)


def _shown(guards: Guards, class_: type, name: str, value: Any) -> Any:
    if type(value) is types.GetSetDescriptorType:
        return doors.Inert(value)  # __dict__ and __weakref__ of one class answer on the instances of others
    if name == "__init__" and type(value) is types.FunctionType and not guards.is_guest_function(value):
        return guards.getattr(class_, name)  # what @dataclass wrote sets the fields of any object
    return value
