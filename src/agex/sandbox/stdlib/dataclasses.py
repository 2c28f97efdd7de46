"""``dataclasses`` for guest code: field names are exact identifiers, and fields belong to the guest.

``dataclass()`` writes source code with the names of the fields in it and runs it with the interpreter's
builtins. So everything that it reads a name from is made exact first: the annotations, each ``Field``, the
fields of the bases. No guest code may run while it works: no metaclass that answers for the class, no
descriptor, no ``__bool__``.

A ``Field`` of a host class is handed out as a copy. None holds the empty metadata that all dataclasses of a
process share: an object that it is compared with would see that dict.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import keyword
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agex._interpreter import syntax_trees
from agex._interpreter.type_slots import namespace_of
from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.classes import guest_type, stand_ins, unsafe_protocols
from agex.sandbox.classes.deepcopy_memo import Memo
from agex.sandbox.runtime.context import asking
from agex.sandbox.stdlib.dataclass_fields import (
    FIELDS,
    Preparation,
    field_table,
    make_exact,
    restore_texts,
    shown_field,
)

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["DATACLASSES", "replace"]


def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """Do what ``dataclasses.dataclass`` does, to guest classes only."""
    if cls is None:
        return functools.partial(dataclass, **options)
    guards = asking()
    if guards is None or not (issubclass(type(cls), type) and guards.classes.is_guest(cls)):
        raise SandboxTypeError("dataclass() changes the class it is given; use it on a class of your own")
    said = {name: bool(value) for name, value in options.items()}
    before, is_done = dict(namespace_of(cls)), False
    try:
        made = syntax_trees.undisturbed(lambda: _made(guards, cls, said))
        for each in namespace_of(made)[FIELDS].values():
            make_exact(each)
        for class_ in (cls, made):
            _keep_to_its_objects(guards, class_)
        is_done = True
    finally:
        if not is_done:  # it failed half way, or something struck
            _take_off_generated(cls, before)
    return made


def _made(guards: Membrane, cls: type, options: dict[str, bool]) -> type:
    """Apply the real ``dataclass``. Callers hold off the collector: a finalizer could change the class."""

    def note(again: type) -> None:  # slots=True builds the class anew
        guards.classes.succeed(cls, again)
        _keep_to_its_objects(guards, cls)  # guest code comes to see it as well
        _keep_to_its_objects(guards, again)

    preparation = Preparation(guards, cls)
    made: type = cls
    try:
        if options.get("slots"):
            type.__setattr__(cls, unsafe_protocols.NAMES[0], unsafe_protocols.First(note))
        made = dataclasses.dataclass(cls, **options)
        restore_texts(made, preparation)
    finally:
        preparation.undo(made)
        if options.get("slots"):
            unsafe_protocols.keep_from(cls)
            unsafe_protocols.keep_from(made)
    return made


def make_dataclass(
    cls_name: Any, fields: Iterable[Any], *, bases: Any = (), namespace: Any = None, **options: Any
) -> Any:
    """Do what ``dataclasses.make_dataclass`` does; the class is made by the guest's ``type()``.

    Its module is the guest's in all versions, as in CPython since 3.12.
    """
    annotations: dict[Any, Any] = {}
    defaults: dict[Any, Any] = {}
    for item in fields:
        said = (item, _ANY) if isinstance(item, str) else item
        if len(said) not in {2, 3}:
            raise TypeError(f"Invalid field: {item!r}")
        name, kind, *default = said
        _check_made(name, annotations)
        annotations[name] = kind
        if default:
            defaults[name] = default[0]
    space = {**(namespace or {}), **defaults, "__annotations__": annotations}
    resolved = types.resolve_bases(bases)
    if resolved is not bases:
        space["__orig_bases__"] = bases
    return dataclass(guest_type.GuestType(cls_name, resolved, space), **options)


_ANY: Any = "typing.Any" if sys.version_info < (3, 14) else typing.Any


def _check_made(name: Any, known: Collection[str]) -> None:
    if type(name) is not str or not name.isidentifier():
        raise TypeError(f"Field names must be valid identifiers: {name!r}")
    if keyword.iskeyword(name):
        raise TypeError(f"Field names must not be keywords: {name!r}")
    if name in known:
        raise TypeError(f"Field name duplicated: {name!r}")


_GENERATED = (
    "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__getstate__", "__setstate__",
    "__replace__",
)  # fmt: skip
"""The generated methods that read or write fields of any object; ``__init__`` has an attribute door."""


def _keep_to_its_objects(guards: Membrane, made: type) -> None:
    """Restrict generated methods to objects of their class, because the code in them is not guarded."""
    for name in _GENERATED:
        method = namespace_of(made).get(name)
        is_generated = type(method) is types.FunctionType and method.__globals__ is not globals()
        if is_generated and not guards.is_guest_function(method):
            type.__setattr__(made, name, _own_only(made, method, _OVER_ALL_FIELDS.get(name, method)))


def _take_off_generated(class_: type, before: Mapping[str, Any]) -> None:
    """Remove the methods that a class did not have before: nothing restricts them to its objects."""
    for name in _GENERATED:
        method = namespace_of(class_).get(name)
        if type(method) is types.FunctionType and method is not before.get(name):
            type.__delattr__(class_, name)


def _own_only(class_: type, method: Any, call: Any) -> Any:
    """Return *call* under the name of *method*, restricted to objects of *class_*."""
    is_below = functools.partial(type.__subclasscheck__, class_)  # which asks no metaclass

    def check(self: Any) -> None:
        if not is_below(type(self)):
            raise SandboxTypeError(
                f"{method.__qualname__}() takes an object of its class, got {type(self).__name__}"
            )

    def replacing(self: Any, /, **changes: Any) -> Any:
        check(self)
        return call(self, **changes)

    # Sorting and dictionaries call these often, so they are as quick as possible.

    def one(self: Any, /) -> Any:
        if type(self) is not class_:
            check(self)
        return call(self)

    def two(self: Any, other: Any, /) -> Any:
        if type(self) is not class_:
            check(self)
        return call(self, other)

    own: Any = (
        replacing if method.__name__ == "__replace__" else one if method.__code__.co_argcount == 1 else two
    )
    own.__name__, own.__qualname__, own.__doc__ = method.__name__, method.__qualname__, method.__doc__
    own.__module__, own.__annotations__ = method.__module__, method.__annotations__
    if hasattr(method, "__wrapped__"):

        def behind(self: Any) -> Any:
            return own(self)

        # By this name pprint recognises the __repr__ of @dataclass.
        behind.__name__, behind.__qualname__ = method.__name__, method.__wrapped__.__qualname__
        own.__wrapped__ = behind
    return own


def _names(obj: Any) -> list[str]:
    fields: Any = type("Fields", (), {FIELDS: field_table(type(obj))})
    return [each.name for each in dataclasses.fields(fields)]


def _getstate(self: Any) -> list[Any]:
    guards = asking()
    return [(guards.getattr if guards else getattr)(self, name) for name in _names(self)]


def _setstate(self: Any, state: Iterable[Any]) -> None:
    for name, value in zip(_names(self), state, strict=False):
        object.__setattr__(self, name, value)


def _replace(self: Any, /, **changes: Any) -> Any:
    is_run = asking() is not None
    return replace(self, **changes) if is_run else dataclasses.replace(self, **changes)


_OVER_ALL_FIELDS = {"__getstate__": _getstate, "__setstate__": _setstate, "__replace__": _replace}
"""The generated methods that ask an object for its fields."""


# -- fields


def field(*, metadata: Any = None, **options: Any) -> Any:
    """Do what ``dataclasses.field`` does."""
    return dataclasses.field(metadata={} if metadata is None else metadata, **options)


def fields(class_or_instance: Any) -> tuple[Any, ...]:
    """Do what ``dataclasses.fields`` does; for a host class, return copies of the fields that may be read."""
    found = dataclasses.fields(class_or_instance)
    guards = asking()
    is_class = issubclass(type(class_or_instance), type)
    owner = class_or_instance if is_class else type(class_or_instance)
    if guards is None or guards.is_own(owner):
        return found
    found = tuple(each for each in found if _may_read(guards, owner, each.name))
    return tuple(shown_field(each) if type(each) is dataclasses.Field else each for each in found)


def _may_read(guards: Membrane, owner: type, name: str) -> bool:
    try:
        guards.readable(owner, name)
    except SandboxAttributeError:
        return False
    return True


Field = stand_ins.closed(dataclasses.Field)
"""``dataclasses.Field`` without a constructor: a field is made by ``field()``."""


# -- objects


def replace(obj: Any, /, **changes: Any) -> Any:
    """Do what ``dataclasses.replace`` does, reading fields as guest code may."""
    class_ = type(obj)
    if issubclass(class_, type) or not dataclasses.is_dataclass(obj):
        raise TypeError("replace() should be called on dataclass instances")
    guards = asking()
    if guards is None or guards.shown_class(class_) is not class_:
        raise SandboxTypeError(
            f"{class_.__name__} cannot be constructed here; use the instances you were given"
        )
    read: Any = obj
    if guards.classes.is_guest(class_):  # its __init__, and maybe its table of fields, are guest code
        read = _read_guarded(guards, obj, class_)
    return dataclasses.replace(read, **changes)


def _read_guarded(guards: Membrane, obj: Any, class_: type) -> Any:
    """Return an object from which the real ``replace`` reads the fields of a guest object, guarded."""
    table = field_table(class_)
    known = {FIELDS: table, "__class__": class_}

    class Reading:
        __dataclass_fields__ = table

        def __getattribute__(self, name: str) -> Any:
            return known[name] if name in known else guards.getattr(obj, name)

    return Reading()


def asdict(obj: Any, *, dict_factory: Callable[[list[tuple[str, Any]]], Any] = dict) -> Any:
    """Do what ``dataclasses.asdict`` does, reading fields as guest code may."""
    if not dataclasses.is_dataclass(obj) or isinstance(obj, type):
        raise TypeError("asdict() should be called on dataclass instances")
    return _unpacked(obj, lambda fields: dict_factory(list(fields)))


def astuple(obj: Any, *, tuple_factory: Callable[[list[Any]], Any] = tuple) -> Any:
    """Do what ``dataclasses.astuple`` does, reading fields as guest code may."""
    if not dataclasses.is_dataclass(obj) or isinstance(obj, type):
        raise TypeError("astuple() should be called on dataclass instances")
    return _unpacked(obj, lambda fields: tuple_factory([value for _, value in fields]))


def _unpacked(obj: Any, make: Callable[[Iterable[tuple[str, Any]]], Any]) -> Any:
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        guards = asking()
        if guards is None:
            raise SandboxAttributeError("fields can be read while the sandbox runs, not after")
        read = guards.getattr
        return make((each.name, _unpacked(read(obj, each.name), make)) for each in dataclasses.fields(obj))
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*[_unpacked(value, make) for value in obj])
    if isinstance(obj, (list, tuple)):
        return type(obj)(_unpacked(value, make) for value in obj)
    if isinstance(obj, collections.defaultdict):
        items = {_unpacked(key, make): _unpacked(value, make) for key, value in obj.items()}
        return type(obj)(obj.default_factory, items)
    if isinstance(obj, dict):
        return type(obj)((_unpacked(key, make), _unpacked(value, make)) for key, value in obj.items())
    return copy.deepcopy(obj, Memo({}))  # type: ignore[arg-type]  # it has all methods that deepcopy calls


DATACLASSES: dict[str, Any] = {
    "Field": Field,
    "asdict": asdict,
    "astuple": astuple,
    "dataclass": dataclass,
    "field": field,
    "fields": fields,
    "make_dataclass": make_dataclass,
    "replace": replace,
}
"""The members of ``dataclasses`` that are guarded."""
