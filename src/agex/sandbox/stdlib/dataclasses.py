"""``dataclasses``, whose field names are names and whose fields are the guest's own.

``dataclass()`` writes source code with the names of the fields in it and runs that with the
interpreter's builtins. So everything that it reads a name from is made exact first - the
annotations, each ``Field``, those of the bases - and nothing of the guest's may run while
it works: not a metaclass that answers for the class, not a descriptor, not a ``__bool__``.

A ``Field`` of a class of the host is given as a copy, and none has the empty metadata that
all dataclasses of a process share: whatever it is compared with gets to see the dict.
"""

from __future__ import annotations

import abc
import collections
import copy
import dataclasses
import functools
import inspect
import keyword
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agex._interpreter import parse as parsing
from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxError, SandboxTypeError
from agex.sandbox.classes import class_registry as classes
from agex.sandbox.classes import host_classes as hostclass
from agex.sandbox.classes import namespace as members
from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.classes import unsafe_protocols as rawmemory
from agex.sandbox.classes.deepcopy_memo import Memo
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance as origins
from agex.sandbox.runtime.context import asking
from agex.sandbox.runtime.scopes import is_bindable

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["DATACLASSES", "replace", "shown_field"]

_FIELDS = "__dataclass_fields__"
_FLAGS = ("init", "repr", "compare")


def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """Do what ``dataclasses.dataclass`` does, to a class of the guest only."""
    if cls is None:
        return functools.partial(dataclass, **options)
    guards = asking()
    if guards is None or not (issubclass(type(cls), type) and guards.classes.is_guest(cls)):
        raise SandboxTypeError("dataclass() changes the class it is given; use it on a class of your own")
    said = {name: bool(value) for name, value in options.items()}
    before, is_done = dict(namespace_of(cls)), False
    try:
        made = parsing.undisturbed(lambda: _made(guards, cls, said))
        for each in namespace_of(made)[_FIELDS].values():
            _make_exact(each)
        for class_ in (cls, made):
            _keep_to_its_objects(guards, class_)
        is_done = True
    finally:
        if not is_done:  # it failed half way, or something struck
            _take_off_generated(cls, before)
    return made


def _made(guards: Membrane, cls: type, options: dict[str, bool]) -> type:
    """Have the real one at work, while no collection runs code of the guest's, which may change the class."""

    def note(again: type) -> None:  # slots=True builds the class anew
        guards.classes.succeed(cls, again)
        _keep_to_its_objects(guards, cls)  # which code of the guest's comes to see as well
        _keep_to_its_objects(guards, again)

    preparation = _Preparation(guards, cls)
    made: type = cls
    try:
        if options.get("slots"):
            type.__setattr__(cls, rawmemory.NAMES[0], rawmemory.First(note))
        made = dataclasses.dataclass(cls, **options)
        _say_again(made, preparation)
    finally:
        preparation.undo(made)
        if options.get("slots"):
            rawmemory.keep_from(cls)
            rawmemory.keep_from(made)
    return made


def make_dataclass(
    cls_name: Any, fields: Iterable[Any], *, bases: Any = (), namespace: Any = None, **options: Any
) -> Any:
    """Do what ``dataclasses.make_dataclass`` does: the class is one that the guest makes by ``type()``.

    Its module is the guest's in all versions, as CPython has it since 3.12.
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
    return dataclass(classes.GuestType(cls_name, resolved, space), **options)


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
"""The methods that read or write fields, of whatever they are given; ``__init__`` has a door."""


def _keep_to_its_objects(guards: Membrane, made: type) -> None:
    """Let generated methods take objects of their class only: the code in them is not guarded."""
    for name in _GENERATED:
        method = namespace_of(made).get(name)
        is_generated = type(method) is types.FunctionType and method.__globals__ is not globals()
        if is_generated and not guards.is_guest_function(method):
            type.__setattr__(made, name, _own_only(made, method, _OVER_ALL_FIELDS.get(name, method)))


def _take_off_generated(class_: type, before: Mapping[str, Any]) -> None:
    """Take off a class the methods that it did not have before: nothing may hold them to its objects."""
    for name in _GENERATED:
        method = namespace_of(class_).get(name)
        if type(method) is types.FunctionType and method is not before.get(name):
            type.__delattr__(class_, name)


def _own_only(class_: type, method: Any, call: Any) -> Any:
    """Give *call* under the name of *method*, for objects of *class_*."""
    is_below = functools.partial(type.__subclasscheck__, class_)  # which asks no metaclass

    def check(self: Any) -> None:
        if not is_below(type(self)):
            raise SandboxTypeError(
                f"{method.__qualname__}() takes an object of its class, got {type(self).__name__}"
            )

    def replacing(self: Any, /, **changes: Any) -> Any:
        check(self)
        return call(self, **changes)

    # What sorting and dictionaries call often is as quick as it can be.

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

        # By this name pprint tells that the text of a class is the one of @dataclass.
        behind.__name__, behind.__qualname__ = method.__name__, method.__wrapped__.__qualname__
        own.__wrapped__ = behind
    return own


def _table(class_: type) -> dict[str, dataclasses.Field[Any]]:
    """Give the fields of a class of the guest's, which may have another table than `dataclass` made."""
    table = _raw(class_, _FIELDS)
    if not members.are_fields(table):
        raise SandboxTypeError(f"class {class_.__name__} needs the fields that @dataclass gives it")
    return table  # type: ignore[no-any-return]


def _names(obj: Any) -> list[str]:
    fields: Any = type("Fields", (), {_FIELDS: _table(type(obj))})
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
"""The generated methods that ask an object what fields it has."""


# -- what the real one reads


class _Preparation:
    """A class as the real ``dataclass`` may have it: exact annotations, exact fields, nothing that runs."""

    def __init__(self, guards: Membrane, cls: type) -> None:
        self._guards = guards
        self._cls = cls
        self._before: dict[str, Any] = {}
        self.is_documented = bool(namespace_of(cls).get("__doc__"))
        self.texts: dict[str, tuple[str, Any]] = {}
        """The texts in annotations, and what stands for each, by the names of fields."""
        names = _annotations(cls)
        _check_names(guards, cls, names)
        _check_metaclass(guards, type(cls), names)
        for base in {id(part): part for each in mro_of(cls) for part in mro_of(each)}.values():
            if base is not cls:
                _check_fields(guards, cls, base)
        _check_post_init(guards, cls)
        fields = {name: field for name in names if (field := self._field(name)) is not None}
        if names or "__annotations__" in namespace_of(cls):
            kinds = {name: _kind(cls, text) for name, text in names.items() if type(text) is str}
            self.texts = {name: (names[name], kind) for name, kind in kinds.items()}
            self._put("__annotations__", _Annotations(names | kinds))
        for name, field in fields.items():
            self._put(name, field)
        for name, is_abstract in _abstract(cls).items():
            if name not in names:
                self._put(name, _STILL_ABSTRACT if is_abstract else None)

    def _put(self, name: str, value: Any) -> None:
        self._before[name] = namespace_of(self._cls).get(name, _NOTHING)
        type.__setattr__(self._cls, name, value)

    def undo(self, made: type) -> None:
        """Give the class back what it had, less the fields that were taken out of it."""
        for name, value in self._before.items():
            was_field = type(value) is dataclasses.Field
            for class_ in {id(each): each for each in (self._cls, made)}.values():
                now = namespace_of(class_).get(name, _NOTHING)
                if now is _NOTHING or type(now) is types.MemberDescriptorType:
                    continue  # of the class with slots: the names of its fields are slots
                if not was_field and value is not _NOTHING:
                    type.__setattr__(class_, name, value)
                elif not was_field:
                    type.__delattr__(class_, name)

    def _field(self, name: str) -> dataclasses.Field[Any] | None:
        """Give the field that stands for a default value; None where the real one may read that itself."""
        found = _raw(self._cls, name)
        if found is _NOTHING or type(found) is types.MemberDescriptorType:
            return None
        if type(found) is dataclasses.Field:
            _make_exact(found)
            return None
        if is_one_of(dataclasses.Field, mro_of(type(found))):
            raise SandboxTypeError(f"the field {name!r} must be made by field()")
        try:
            value = self._guards.getattr(self._cls, name)
        except SandboxError:
            raise
        except AttributeError:  # a descriptor that only objects may ask
            value = dataclasses.MISSING
        if _is_plain(found) and _is_plain(value):
            return None
        made: Any = dataclasses.field(default=value)
        return made  # type: ignore[no-any-return]  # typed as what it is a default of


def _abstract(cls: type) -> dict[str, bool]:
    """Tell which members that run something when they are read are abstract: the real one asks for that."""
    found: dict[str, bool] = {}
    for base in mro_of(cls)[1:]:
        for name in namespace_of(base).get("__abstractmethods__", ()):
            value = _raw(cls, name)
            if type(value) is not types.FunctionType and not _is_plain(value):
                found[name] = bool(getattr(getattr(cls, name, None), "__isabstractmethod__", False))
    return found


_STILL_ABSTRACT: Any = abc.abstractmethod(lambda: None)


class _Annotations(dict[str, Any]):
    """Annotations that stay what they are while fields are made of them."""

    def items(self) -> Any:
        return list(super().items())


def _is_plain(value: object) -> bool:
    """Tell whether looking at a value runs nothing."""
    return hostclass.is_static(type(value)) and type(value) is not classmethod


def _annotations(cls: type) -> dict[Any, Any]:
    found = namespace_of(cls).get("__annotations__")
    if found is None and sys.version_info >= (3, 14):
        found = inspect.get_annotations(cls)
    if found is not None and not isinstance(found, dict):
        raise SandboxTypeError("the annotations of a dataclass must be a dict")
    return dict(dict.items(found or {}))


_KINDS: tuple[Any, ...] = (typing.ClassVar, dataclasses.InitVar, dataclasses.KW_ONLY)
_FIRST_NAME = re.compile(r"\s*(?:(\w+)\s*\.)?\s*(\w+)")


def _kind(cls: type, text: str) -> Any:
    """Give what stands for a text in an annotation: what it makes of a field, if that is no plain one.

    The real ``dataclass`` looks for the names in a module of the host that is called as the guest's is, and
    fails where there is none. In a text that begins as no name does it looks for nothing.
    """
    found = _FIRST_NAME.match(text)
    statement = origins.statement_of(cls)
    module, name = found.groups() if found is not None else ("", "")
    value = None if statement is None else statement.body.__globals__.get(module or name)
    if module is not None:
        value = vars(value).get(name) if type(value) is types.ModuleType else None
    return next((kind for kind in _KINDS if value is kind), f"'{text}'")


def _say_again(made: type, preparation: _Preparation) -> None:
    """Give fields the texts that they were said with, and the class a text of its own that has those."""
    for name, (text, kind) in preparation.texts.items():
        doc: Any = namespace_of(made).get("__doc__")
        for before in "( " if type(doc) is str and not preparation.is_documented else "":
            read = f"{before}{name}: {inspect.formatannotation(kind)}"
            doc = doc.replace(read, f"{before}{name}: {text!r}")
            type.__setattr__(made, "__doc__", doc)
        field = namespace_of(made)[_FIELDS].get(name)
        if field is not None:
            field.type = text
        said = getattr(namespace_of(made).get("__init__"), "__annotations__", {})
        if name in said:
            said[name] = text


def _raw(cls: type, name: str) -> Any:
    """Give what is bound to a name in a class or its bases, unasked."""
    for base in mro_of(cls):
        found = namespace_of(base).get(name, _NOTHING)
        if found is not _NOTHING:
            return found
    return _NOTHING


# -- what is refused


def _check_names(guards: Membrane, cls: type, names: Iterable[Any]) -> None:
    for name in names:
        _check_name(name)
        if not guards.classes.is_pure(cls):  # what is generated reads the field of every object, unasked
            guards.readable(cls, name)
            if name in guards.classes.host_names(cls) or guards.policy.denies(cls, name):
                raise SandboxAttributeError(
                    f"the field {name!r} is the name of something that the host keeps; choose another name"
                )


def _check_name(name: Any) -> None:
    """Refuse what is no name: it would become source code. Or a name that reads what no guest may."""
    if type(name) is not str or not is_bindable(name) or ledger.is_denied(name):
        raise SandboxTypeError(f"field names must be identifiers, got {name!r}")


def _check_metaclass(guards: Membrane, metaclass: type, names: Iterable[str]) -> None:
    """Refuse a metaclass that answers for the class what the real ``dataclass`` asks of it."""
    for part in mro_of(metaclass):
        if not guards.classes.is_guest(part):
            continue
        namespace = namespace_of(part)
        for name in (*_ASKED, *names):
            if name in namespace:
                raise SandboxTypeError(
                    f"dataclass() cannot be used with a metaclass that defines {name}; leave one of them out"
                )
        if type(namespace.get("__annotations__", {})) is not dict:
            raise SandboxTypeError("dataclass() cannot be used with a metaclass that answers for annotations")
        for name in _SAID:
            if not isinstance(namespace.get(name, ""), str | None):  # a property, say
                raise SandboxTypeError(f"dataclass() cannot be used with a metaclass that defines {name}")


def _check_fields(guards: Membrane, cls: type, base: type) -> None:
    """See to it that the fields a base brings are what ``dataclass`` made."""
    namespace = namespace_of(base)
    found = namespace.get(_FIELDS)
    if found is None:
        return
    if guards.classes.is_guest(base):
        is_exact = type(found) is dict and all(
            type(name) is str and type(field) is dataclasses.Field and field.name == name
            for name, field in dict.items(found)
        )
        if not is_exact or type(namespace.get("__dataclass_params__")) is not _PARAMS:
            raise SandboxTypeError("the fields of a dataclass cannot be changed once they are made")
    elif any(ledger.is_private(name) for name in found):
        raise SandboxTypeError(
            f"{base.__name__} has private fields, which {cls.__name__} cannot show and compare; "
            "leave out @dataclass, or keep the host object in a field"
        )
    for name in found if guards.classes.is_guest(base) else ():
        _check_name(name)


def _check_post_init(guards: Membrane, cls: type) -> None:
    """Refuse a ``__post_init__`` that is found by running something."""
    found = _raw(cls, "__post_init__")
    if found is _NOTHING or is_one_of(type(found), (types.FunctionType, staticmethod)):
        return
    if type(found) is classmethod and type(found.__func__) is types.FunctionType:
        return
    raise SandboxTypeError("__post_init__ of a dataclass must be a method")


_ASKED = (
    "__getattribute__", "__getattr__", "__setattr__", "__delattr__", "__dict__", "__mro__", "__bases__",
    "__annotate__", "__class__", "__post_init__", "__match_args__", _FIELDS, "__dataclass_params__",
)  # fmt: skip
"""What a metaclass may not define: a class is asked for these while its fields are found."""
_SAID = ("__name__", "__qualname__", "__module__", "__doc__")
_PARAMS: type = type(dataclasses.dataclass(type("_", (), {})).__dataclass_params__)  # type: ignore[attr-defined]
_NOTHING = object()


# -- fields


def _make_exact(field: Any) -> None:
    """Give a field truths where truths are asked of it, and metadata of its own."""
    for name in _FLAGS:
        setattr(field, name, bool(getattr(field, name)))
    field.hash = None if field.hash is None else bool(field.hash)
    field.kw_only = field.kw_only if field.kw_only is dataclasses.MISSING else bool(field.kw_only)
    if field.metadata is _NO_METADATA:  # which is shared by all dataclasses there are
        field.metadata = types.MappingProxyType({})


def shown_field(field: dataclasses.Field[Any]) -> dataclasses.Field[Any]:
    """Give a copy of a field of the host as the guest may hold it."""
    made: Any = dataclasses.Field.__new__(dataclasses.Field)
    for slot in dataclasses.Field.__slots__:
        value = getattr(field, slot)
        setattr(made, slot, classes.as_shown(value))
    _make_exact(made)
    return made  # type: ignore[no-any-return]


_NO_METADATA = dataclasses.field().metadata


def field(*, metadata: Any = None, **options: Any) -> Any:
    """Do what ``dataclasses.field`` does."""
    return dataclasses.field(metadata={} if metadata is None else metadata, **options)


def fields(class_or_instance: Any) -> tuple[Any, ...]:
    """Do what ``dataclasses.fields`` does; of a class of the host, copies of the fields that may be read."""
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


Field = instead.closed(dataclasses.Field)
"""``dataclasses.Field`` to look at: a field is made by ``field()``."""


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
    if guards.classes.is_guest(class_):  # its __init__ is the guest's, and maybe what it has for fields
        read = _read_guarded(guards, obj, class_)
    return dataclasses.replace(read, **changes)


def _read_guarded(guards: Membrane, obj: Any, class_: type) -> Any:
    """Give what the real ``replace`` reads an object of a guest's class from."""
    table = _table(class_)
    known = {_FIELDS: table, "__class__": class_}

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
    return copy.deepcopy(obj, Memo({}))  # type: ignore[arg-type]  # all that a memo is asked for


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
