"""Fields and annotations of a guest class, made exact before the real ``dataclass`` reads them.

The real one writes source code with the names of the fields in it. Every source of a name is checked here:
the annotations, each ``Field``, the fields of the bases, and the metaclass.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agex._interpreter.type_slots import mro_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxError, SandboxTypeError
from agex.sandbox.classes import guest_type, host_classes
from agex.sandbox.classes import namespace as members
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance
from agex.sandbox.runtime.scopes import is_bindable

if TYPE_CHECKING:
    from agex.sandbox.runtime.membrane import Membrane

__all__ = ["FIELDS", "Preparation", "field_table", "make_exact", "restore_texts", "shown_field"]

FIELDS = "__dataclass_fields__"
_FLAGS = ("init", "repr", "compare")


class Preparation:
    """Prepares a class for the real ``dataclass``: exact annotations and fields, nothing that runs code."""

    def __init__(self, guards: Membrane, cls: type) -> None:
        self._guards = guards
        self._cls = cls
        self._before: dict[str, Any] = {}
        self.is_documented = bool(namespace_of(cls).get("__doc__"))
        self.texts: dict[str, tuple[str, Any]] = {}
        """The text annotations of fields and their replacements, by the names of the fields."""
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
        """Restore the attributes of the class, except the fields that ``dataclass`` removed from it."""
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
        """Return a field for a default value; None if the real ``dataclass`` may read the default itself."""
        found = _raw(self._cls, name)
        if found is _NOTHING or type(found) is types.MemberDescriptorType:
            return None
        if type(found) is dataclasses.Field:
            make_exact(found)
            return None
        if is_one_of(dataclasses.Field, mro_of(type(found))):
            raise SandboxTypeError(f"the field {name!r} must be made by field()")
        try:
            value = self._guards.getattr(self._cls, name)
        except SandboxError:
            raise
        except AttributeError:  # a descriptor that works on instances only
            value = dataclasses.MISSING
        if _is_plain(found) and _is_plain(value):
            return None
        made: Any = dataclasses.field(default=value)
        return made  # type: ignore[no-any-return]  # typed like its default


def _abstract(cls: type) -> dict[str, bool]:
    """Return whether each inherited abstract member that runs code when read is still abstract."""
    found: dict[str, bool] = {}
    for base in mro_of(cls)[1:]:
        for name in namespace_of(base).get("__abstractmethods__", ()):
            value = _raw(cls, name)
            if type(value) is not types.FunctionType and not _is_plain(value):
                found[name] = bool(getattr(getattr(cls, name, None), "__isabstractmethod__", False))
    return found


_STILL_ABSTRACT: Any = abc.abstractmethod(lambda: None)


class _Annotations(dict[str, Any]):
    """Annotations that do not change while fields are made of them."""

    def items(self) -> Any:
        return list(super().items())


def _is_plain(value: object) -> bool:
    """Return whether reading a value from a class runs no code."""
    return host_classes.is_static(type(value)) and type(value) is not classmethod


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
    """Return the replacement of a text annotation: the special kind of field that it names, or a plain text.

    The real ``dataclass`` would look the names up in a host module named like the guest's module, and fail if
    there is none. It looks nothing up for a text that does not begin with a name.
    """
    found = _FIRST_NAME.match(text)
    statement = provenance.statement_of(cls)
    module, name = found.groups() if found is not None else ("", "")
    value = None if statement is None else statement.body.__globals__.get(module or name)
    if module is not None:
        value = vars(value).get(name) if type(value) is types.ModuleType else None
    return next((kind for kind in _KINDS if value is kind), f"'{text}'")


def restore_texts(made: type, preparation: Preparation) -> None:
    """Restore the text annotations in the fields, in ``__init__`` and in the generated docstring."""
    for name, (text, kind) in preparation.texts.items():
        doc: Any = namespace_of(made).get("__doc__")
        for before in "( " if type(doc) is str and not preparation.is_documented else "":
            read = f"{before}{name}: {inspect.formatannotation(kind)}"
            doc = doc.replace(read, f"{before}{name}: {text!r}")
            type.__setattr__(made, "__doc__", doc)
        field = namespace_of(made)[FIELDS].get(name)
        if field is not None:
            field.type = text
        said = getattr(namespace_of(made).get("__init__"), "__annotations__", {})
        if name in said:
            said[name] = text


def _raw(cls: type, name: str) -> Any:
    """Return the raw value of a name in a class or its bases; `_NOTHING` if there is none."""
    for base in mro_of(cls):
        found = namespace_of(base).get(name, _NOTHING)
        if found is not _NOTHING:
            return found
    return _NOTHING


# -- checks


def _check_names(guards: Membrane, cls: type, names: Iterable[Any]) -> None:
    for name in names:
        _check_name(name)
        if not guards.classes.is_pure(cls):  # generated methods read the field of every object, unguarded
            guards.readable(cls, name)
            if name in guards.classes.host_names(cls) or guards.policy.denies(cls, name):
                raise SandboxAttributeError(
                    f"the field {name!r} is the name of something that the host keeps; choose another name"
                )


def _check_name(name: Any) -> None:
    """Refuse a field name that is no identifier, as it becomes source code, or that guests may not read."""
    if type(name) is not str or not is_bindable(name) or ledger.is_denied(name):
        raise SandboxTypeError(f"field names must be identifiers, got {name!r}")


def _check_metaclass(guards: Membrane, metaclass: type, names: Iterable[str]) -> None:
    """Refuse a metaclass that would answer for the class when the real ``dataclass`` reads it."""
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
    """Refuse fields of a base that ``dataclass`` did not make, or that guest code may not read."""
    namespace = namespace_of(base)
    found = namespace.get(FIELDS)
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
    """Refuse a ``__post_init__`` whose lookup runs code."""
    found = _raw(cls, "__post_init__")
    if found is _NOTHING or is_one_of(type(found), (types.FunctionType, staticmethod)):
        return
    if type(found) is classmethod and type(found.__func__) is types.FunctionType:
        return
    raise SandboxTypeError("__post_init__ of a dataclass must be a method")


_ASKED = (
    "__getattribute__", "__getattr__", "__setattr__", "__delattr__", "__dict__", "__mro__", "__bases__",
    "__annotate__", "__class__", "__post_init__", "__match_args__", FIELDS, "__dataclass_params__",
)  # fmt: skip
"""Names that a metaclass may not define: the real ``dataclass`` reads them while it finds the fields."""
_SAID = ("__name__", "__qualname__", "__module__", "__doc__")
_PARAMS: type = type(dataclasses.dataclass(type("_", (), {})).__dataclass_params__)  # type: ignore[attr-defined]
_NOTHING = object()


# -- exact fields


def make_exact(field: Any) -> None:
    """Make the flags of a field exact booleans, and its metadata its own."""
    for name in _FLAGS:
        setattr(field, name, bool(getattr(field, name)))
    field.hash = None if field.hash is None else bool(field.hash)
    field.kw_only = field.kw_only if field.kw_only is dataclasses.MISSING else bool(field.kw_only)
    if field.metadata is _NO_METADATA:  # all dataclasses of the process share it
        field.metadata = types.MappingProxyType({})


def shown_field(field: dataclasses.Field[Any]) -> dataclasses.Field[Any]:
    """Return a copy of a host class's field that guest code may hold."""
    made: Any = dataclasses.Field.__new__(dataclasses.Field)
    for slot in dataclasses.Field.__slots__:
        value = getattr(field, slot)
        setattr(made, slot, guest_type.as_shown(value))
    make_exact(made)
    return made  # type: ignore[no-any-return]


_NO_METADATA = dataclasses.field().metadata


def field_table(class_: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the table of fields of a guest class; raise if it is not one that ``dataclass`` made."""
    table = _raw(class_, FIELDS)
    if not members.are_fields(table):
        raise SandboxTypeError(f"class {class_.__name__} needs the fields that @dataclass gives it")
    return table  # type: ignore[no-any-return]
