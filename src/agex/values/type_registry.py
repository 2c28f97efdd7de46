"""Registry of types: which function takes the instances of a type apart."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any

from agex.values.adapters import arrow_tables as tables
from agex.values.adapters import instances
from agex.values.adapters import numpy_arrays as arrays
from agex.values.adapters import pandas_frames as frames
from agex.values.adapters import pandas_scalars as scalars
from agex.values.adapters import stdlib as plain
from agex.values.adapters.callable_builder import GETTERS, CallableBuilder
from agex.values.base.allowlist import class_name
from agex.values.base.type_checks import package_of
from agex.values.code.callables import KINDS, CannotKeep
from agex.values.code.capture import Captures, take_cell
from agex.values.code.instance_builder import InstanceBuilder
from agex.values.code.reconstructor import Builder
from agex.values.code.stream_markers import (
    CapturedNamespace,
    ClassContent,
    CodeReference,
    EarlyNamespaces,
    FirstClasses,
    NamespaceContent,
    NamespaceList,
)

__all__ = ["Kind", "find", "native"]

Kind = Callable[[Any, Any], Any]


def native(_encoder: Any, _value: Any) -> Any:
    """Leave it to pickle."""
    return NotImplemented


def find(cls: type, captures: Captures) -> Kind:
    """Find the kind of a type."""
    if cls in _TABLE:
        return _TABLE[cls]
    if issubclass(cls, type):
        return _take_code
    if captures.is_named_tuple(cls):
        return _take_tuple
    if captures.is_own(cls):
        if issubclass(cls, enum.Enum):
            return _take_member
        is_plain = instances.has_only_attributes(cls)
        return _of_attributes(cls, Builder.instance, None) if is_plain else _take_instance
    package = package_of(cls)
    found = _LIBRARIES[package](cls) if package in _LIBRARIES else None
    if found is not None:
        return found
    if captures.allow.is_registered(cls):
        if issubclass(cls, enum.Enum):
            return _take_member
        if instances.has_own_pickling(cls):
            return _or_by_name(_take_constructed)
        is_plain = instances.has_only_attributes(cls)
        return _or_by_name(_of_attributes(cls, Builder.record, class_name(cls)) if is_plain else _take_record)
    return _or_by_name(_take_getter)


_LIBRARIES: dict[str, Callable[[type], Kind | None]] = {
    "numpy": arrays.find_kind,
    "agex": arrays.find_kind,
    "pandas": frames.find_kind,
    "pyarrow": tables.find_kind,
    "polars": tables.find_kind,
    "plotly": tables.find_kind,
    "pytz": lambda cls: scalars.take_zone if hasattr(cls, "utcoffset") else None,
}


def _or_by_name(kind: Kind) -> Kind:
    """Keep an object that the host registered by its name, and others by their kind."""

    def take(encoder: Any, value: Any) -> Any:
        guest = encoder.captures.guest
        if guest is not None and guest.host_name(value) is not None:
            return _take_code(encoder, value)
        return kind(encoder, value)

    return take


def _take_getter(encoder: Any, value: Any) -> Any:
    guest = encoder.captures.guest
    if guest is not None and guest.host_name(type(value)) in GETTERS:
        return _take_code(encoder, value)
    return _refuse(encoder, value)


def _refuse(_encoder: Any, value: Any) -> Any:
    name = class_name(type(value))
    # Of a class statement, its own or that of a base.
    if any({"__dict__", "__slots__"} & vars(cls).keys() for cls in type(value).__mro__):
        raise CannotKeep(
            f"its class {name} is not registered; agent.cls({name.rpartition('.')[2]}) allows it"
        )
    raise CannotKeep(f"a {name.removeprefix('builtins.')} has no state that can be stored")


# -- code ----------------------------------------------------------------------------------------


def _take_code(encoder: Any, value: Any) -> Any:
    """Take apart a function or class in a place where handles are not unwrapped."""
    if id(value) in _OURS:  # by identity: a guest metaclass could define __hash__
        return NotImplemented
    return Builder.real, (encoder.held(value),)


def _take_held(encoder: Any, held: CodeReference) -> Any:
    return encoder.captures.take(encoder, held)


# -- instances -----------------------------------------------------------------------------------


def _take_instance(encoder: Any, value: Any) -> Any:
    args, state = instances.take_apart(encoder, value)
    return Builder.instance, (encoder.held(type(value)), args), state, None, None, Builder.fill


def _take_record(encoder: Any, value: Any) -> Any:
    args, state = instances.take_apart(encoder, value)
    return Builder.record, (class_name(type(value)), args), state, None, None, Builder.fill


def _of_attributes(cls: type, make: Any, name: str | None) -> Kind:
    """Return the kind of a class whose instances hold only attributes: the same, but faster."""

    def take(encoder: Any, value: Any) -> Any:
        fields = instances.attributes_of(value)
        if not _WRAPPED.isdisjoint(map(type, fields.values())):
            fields = {key: encoder.top(each) for key, each in fields.items()}
        return make, (name or encoder.held(cls), ()), fields, None, None, Builder.fill_attributes

    return take


_WRAPPED = frozenset(
    {type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType}
)  # functions and classes of other types come back as well, by `Builder.real`


def _take_constructed(encoder: Any, value: Any) -> Any:
    """Take apart an instance whose class defines its own pickling: by a call of the class, and a state."""
    cls = type(value)
    reduced: Any = value.__reduce_ex__(5)
    if type(reduced) is not tuple or any(each is not None for each in reduced[3:]):
        raise CannotKeep(f"{class_name(cls)} is pickled in a way that is not supported")
    function, args, *rest = reduced
    state = rest[0] if rest else None
    plainly = getattr(function, "__name__", "") == "__newobj__" and args[0] is cls
    if not plainly and function is not cls:
        raise CannotKeep(f"{class_name(cls)} is pickled by a function, not by its own constructor")
    args = (class_name(cls), tuple(args[1:] if plainly else args), plainly)
    if state is None:
        return Builder.construct, args
    return Builder.construct, args, state, None, None, Builder.fill_constructed


def _take_member(encoder: Any, value: Any) -> Any:
    cls = type(value)
    own = instances.attributes_of(value)
    name = own.get("_name_")
    known = class_name(cls) if encoder.captures.allow.is_registered(cls) else encoder.held(cls)
    if cls._member_map_.get(name) is value:
        return Builder.member, (known, (name,))
    if not issubclass(cls, enum.Flag):
        raise CannotKeep("it is no member of its enumeration")
    return Builder.flag, (known, own["_value_"])


def _take_tuple(encoder: Any, value: Any) -> Any:
    return Builder.tuple_of, (encoder.held(type(value)), tuple(value))


_OURS = frozenset(
    id(each)
    for each in (
        *plain.NATIVE,
        *plain.CONSTRUCTORS,
        *arrays.CONSTRUCTORS,
        *frames.CONSTRUCTORS,
        *tables.CONSTRUCTORS,
        *(
            getattr(each, "__func__", each)
            for cls in (Builder, InstanceBuilder, CallableBuilder)
            for each in vars(cls).values()
            if isinstance(each, types.FunctionType | staticmethod)
        ),
    )
)

_TABLE: dict[type, Kind] = {
    **dict.fromkeys(plain.NATIVE, native),
    **plain.KINDS,
    type(...): native,
    type(NotImplemented): native,
    CodeReference: _take_held,
    CapturedNamespace: lambda _, __: (Builder.namespace, ()),
    NamespaceList: lambda encoder, _: (Builder.fillings, (), None, encoder.captures.fillings(encoder)),
    EarlyNamespaces: lambda encoder, _: (Builder.fillings, (), None, encoder.captures.early(encoder)),
    FirstClasses: lambda encoder, _: (Builder.fillings, (), None, encoder.captures.classes(encoder)),
    ClassContent: lambda encoder, filled: encoder.captures.fill(encoder, filled),
    NamespaceContent: lambda _, filling: (Builder.fill_namespace, filling.content),
    types.CellType: take_cell,
    **dict.fromkeys(KINDS, _take_code),
}
