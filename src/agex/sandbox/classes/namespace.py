"""What the namespace of a class of the guest's may hold, however the class is made."""

from __future__ import annotations

import abc
import enum
import functools
import sys
import types
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from agex._interpreter.type_slots import module_of, mro_of, name_of, namespace_of
from agex.errors import SandboxAttributeError, SandboxTypeError
from agex.sandbox.classes import hook_guards as answers
from agex.sandbox.classes import host_classes as hostclass
from agex.sandbox.classes import stand_ins as instead
from agex.sandbox.classes import unsafe_protocols as rawmemory
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance as origins
from agex.sandbox.runtime.context import asking

__all__ = [
    "OF_ABSTRACT",
    "are_fields",
    "check",
    "check_enumeration",
    "check_given",
    "check_maker",
    "check_over",
    "check_prepared",
    "is_kept",
    "is_over_abstract",
    "making",
    "of_its_own",
    "settled",
]

_NEVER = ledger.NEVER_DEFINED.union(rawmemory.NAMES)
_SAYABLE = ledger.DEFINABLE | {
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__classcell__",
    "__classdict__", "__classdictcell__", "__conditional_annotations__", "__dataclass_fields__",
    "__dataclass_params__", "__parameters__", "__type_params__",
}  # fmt: skip
"""The dunders that a metaclass may be given: what may be defined, and what compilers and decorators add."""


def check(namespace: Any, class_name: Any) -> None:
    """Refuse names that no class of a guest has."""
    is_dict = isinstance(namespace, dict)
    members = dict.keys(namespace) if is_dict else namespace.keys()
    odd = {*map(type, members)} - {str}
    if odd:  # it may equal what it likes, when it likes
        raise SandboxTypeError(
            f"class {class_name} has a member named by a {odd.pop().__name__}; use a plain str"
        )
    for member in _NEVER.intersection(members):
        value = dict.__getitem__(namespace, member) if is_dict else namespace[member]
        if not rawmemory.is_kept(value) and type(value) is not types.GetSetDescriptorType:
            raise SandboxTypeError(
                f"class {class_name} cannot define {member}; use a context manager or a plain method"
            )
    if is_dict:
        _check_told(namespace, class_name)


def of_its_own(namespace: dict[str, Any], class_name: Any, makers: Iterable[Any]) -> dict[str, Any]:
    """Return a copy, which stays as it was checked; one of a class of the guest's could answer otherwise.

    One of a library's own class, which a metaclass of that library among *makers* prepares, stays as it is.
    """
    kind: Any = type(namespace)
    if kind is dict:
        return dict(namespace)
    if kind is OrderedDict:
        return OrderedDict(OrderedDict.items(namespace))  # type: ignore[arg-type]
    if _is_prepared(kind, makers):
        return namespace
    if kind is not _OF_ENUMERATIONS:
        raise SandboxTypeError(
            f"class {class_name} needs the namespace that its metaclass prepares; leave __prepare__() out"
        )
    made: Any = dict.__new__(kind)
    dict.update(made, namespace)
    vars(made).update(vars(namespace))
    return made  # type: ignore[no-any-return]


def settled(namespace: dict[str, Any], module: str) -> dict[str, Any]:
    """Return a copy, of *module* if it names none: what a collection closes meanwhile may change the other."""
    kind: Any = OrderedDict if type(namespace) is OrderedDict else dict  # whose order is its own
    made = dict(kind.items(namespace))
    made.setdefault("__module__", module)
    return made


def check_prepared(body: types.CodeType, metaclass: Any, class_name: Any) -> None:
    """Refuse a generic class in the body of one whose namespace a metaclass of the guest's prepares.

    The interpreter asks that for ``.type_params``, and takes what it is given for a tuple.
    """
    parts = mro_of(metaclass) if isinstance(metaclass, type) else ()
    maker = next((part for part in parts if "__prepare__" in namespace_of(part)), metaclass)
    # Its class may answer in its place.
    is_own = not parts or any(map(origins.is_guest_class, (maker, *mro_of(type(metaclass)))))
    inner = (each for each in body.co_consts if isinstance(each, types.CodeType))
    if is_own and any(".generic_base" in each.co_varnames for each in inner):
        raise SandboxTypeError(
            f"class {class_name} has a __prepare__() and cannot hold a generic class; define that outside"
        )


def _is_prepared(kind: type, makers: Iterable[Any]) -> bool:
    parts = [part for maker in makers if isinstance(maker, type) for part in mro_of(maker)]
    packages = {_package_of(part) for part in parts if not origins.is_guest_class(part)}
    package = _package_of(kind)
    is_library = package != "" and package not in sys.stdlib_module_names
    return is_library and package in packages and not origins.is_guest_class(kind)


def _package_of(class_: type) -> str:
    module: object = module_of(class_)
    return module.partition(".")[0] if type(module) is str else ""


_OF_ENUMERATIONS: type = type(enum.EnumType.__prepare__("_", ()))


def check_given(namespace: dict[str, Any], class_name: Any, *, is_unseen: bool) -> None:
    """Refuse what a class statement could not say: ``type(name, bases, namespace)`` takes any dunder.

    The interpreter puts the real namespace of the new class, which goes past whatever guards that, into
    a cell for its own use (Python 3.12); one that the guest may have *is_unseen* only where no code of
    its own is given the parts of the class.
    """
    check(namespace, class_name)
    if not is_unseen:
        dict.pop(namespace, "__classdictcell__", None)
    for member in dict.keys(namespace):
        if ledger.is_dunder(member) and member not in _SAYABLE:
            raise SandboxTypeError(f"class {class_name} cannot define {member}; give it another name")


def check_enumeration(namespace: dict[str, Any], class_name: Any, bases: Iterable[type]) -> None:
    """Refuse a member named as a method of a base: its members would look for it on their value."""
    parts = [part for base in bases for part in mro_of(base) if not issubclass(type(part), enum.EnumType)]
    for member, value in dict.items(namespace):
        if ledger.is_dunder(member) or hasattr(type(value), "__get__"):
            continue
        for part in parts:
            # A builtin's methods are no secrets, nor is what they give of a value.
            if not hostclass.is_static(part) and hasattr(type(namespace_of(part).get(member)), "__get__"):
                raise SandboxTypeError(
                    f"enumeration {class_name} cannot have a member named {member}, which {part.__name__} "
                    "defines; choose another name"
                )


_TABLES = frozenset({"_member_map_", "_value2member_map_", "_member_names_"})


def is_kept(class_: type, name: str) -> bool:
    """Return whether a class keeps what it was made with there.

    An enumeration its members: whoever stores one of them asks that for it.
    """
    is_table = name in _TABLES and issubclass(type(class_), enum.EnumType)
    return is_table or _is_split(class_, name)


def is_over_abstract(bases: Iterable[Any]) -> bool:
    """Return whether an abstract class that is not the guest's is told what classes over *bases* say.

    ``isinstance(x, Sequence)`` asks each class over ``Sequence`` whether *x* is one of its objects, and
    remembers the answer for as long as the process lives.
    """
    parts = [part for base in bases if isinstance(base, type) for part in mro_of(base)]
    return any(
        issubclass(type(part), abc.ABCMeta) and part not in _ASKED_BY_NOBODY
        for part in parts
        if not origins.is_guest_class(part)
    )


_ASKED_BY_NOBODY: tuple[Any, ...] = (abc.ABC, typing.Protocol)

OF_ABSTRACT: type = type(vars(abc.ABC)["_abc_impl"])
"""What the interpreter itself keeps in each abstract class, under a private name."""


def check_over(
    namespace: dict[str, Any],
    class_name: Any,
    bases: tuple[Any, ...],
    makers: Iterable[Any],
    said: dict[str, Any],
    *,
    check_statement: Callable[[dict[str, Any], Any, tuple[Any, ...], dict[str, Any]], None],
) -> None:
    """Refuse what certain bases do not go with, and have a class over others be what they need."""
    _check_abstract(namespace, class_name, bases, makers)
    _check_home(namespace, class_name, makers)
    check_statement(namespace, class_name, bases, said)
    _keep_whole(namespace, class_name, bases)


def _check_home(namespace: dict[str, Any], class_name: Any, makers: Iterable[Any]) -> None:
    """Refuse another module than the guest's, where texts of annotations are looked up in that."""
    guards = asking()
    looks_up = any(name_of(maker) in _LOOKING_UP for maker in makers if isinstance(maker, type))
    module = dict.get(namespace, "__module__")
    if looks_up and guards is not None and not guards.classes.is_mark(module):
        raise SandboxTypeError(f"class {class_name} cannot say its __module__; leave it out")


_LOOKING_UP = ("ModelMetaclass", "_TypedDictMeta")
"""Metaclasses of models and of typed dicts."""


def _check_abstract(
    namespace: dict[str, Any], class_name: Any, bases: tuple[Any, ...], makers: Iterable[Any]
) -> None:
    """Refuse that a class says of others that they are of an abstract class of the host's."""
    if not is_over_abstract(bases):
        return
    asked = [(part, "__subclasshook__") for base in bases if isinstance(base, type) for part in mro_of(base)]
    asked += [
        (part, "__subclasscheck__") for maker in makers if isinstance(maker, type) for part in mro_of(maker)
    ]
    said = [hook for part, hook in asked if answers.is_guarded(namespace_of(part).get(hook))]
    if dict.__contains__(namespace, "__subclasshook__") or said:
        raise SandboxTypeError(
            f"class {class_name} cannot have {said[0] if said else '__subclasshook__'}: it inherits from an "
            "abstract class that others use as well; derive it from abc.ABC"
        )


def are_fields(table: Any) -> bool:
    """Return whether this is what ``@dataclass`` makes: what reads the fields of an object believes it."""
    dataclasses: Any = sys.modules.get("dataclasses")  # not imported for a table that may be there
    return type(table) is dict and all(
        type(key) is str and type(field) is dataclasses.Field and field.name == key
        for key, field in table.items()
    )


_FROZEN = (bool, bytes, float, int, str, type(None))


def making(is_own: Callable[[type], bool]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of a metaclass's ``__new__``: whoever calls that writes to what it gives.

    So it gives a class or an object of the guest's own, or what nobody can write to.
    """

    def making_own(new: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(new)
        def __new__(*args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is the one of the class
            made = new(*args, **kwargs)
            if is_one_of(type(made), _FROZEN) or is_own(made if issubclass(type(made), type) else type(made)):
                return made
            raise SandboxTypeError("__new__() of a metaclass must give a class of your own")

        return __new__

    return making_own


def check_maker(class_: type) -> None:
    """Refuse a library's metaclass that is given parts of a class by their names, which nobody would check.

    One of the guest's makes of what it is given what it likes, and comes to another that is checked.
    """
    new = next((part for part in mro_of(class_) if "__new__" in namespace_of(part)), object)
    if issubclass(class_, type) and not origins.is_guest_class(new) and not hostclass.is_static(new):
        raise SandboxTypeError(
            f"{name_of(class_)}() takes a name, bases and a namespace, in this order and unnamed"
        )


def _check_told(namespace: dict[str, Any], class_name: Any) -> None:
    """Refuse what a class of the host's has already."""
    told: dict[int, str] = {}
    for name, value in dict.items(namespace):
        kind = type(value)
        if kind is not types.FunctionType and kind is not str and _is_told(kind):
            told.update((id(each), name) for each in _told(value))
    found = _owner(told) if told else None
    if found is not None:
        owner, name = found
        raise SandboxTypeError(
            f"class {class_name} cannot have {name}: it is a member of {name_of(owner)}, which would be told "
            "another name; make one of your own"
        )


def _is_told(kind: type) -> bool:
    """Return whether Python code of the host's is told the name of an object."""
    part = next((part for part in mro_of(kind) if "__set_name__" in namespace_of(part)), None)
    if part is None or part is functools.cached_property:  # which takes no second name
        return False
    is_ours = origins.is_guest_class(part) or instead.is_ours(part)
    return not is_ours and type(namespace_of(part)["__set_name__"]) is types.FunctionType


def _told(value: Any) -> list[Any]:
    """Return what is told: a field hands the name on to its default."""
    try:
        default = object.__getattribute__(value, "default")
    except AttributeError:
        return [value]
    held = [default] if _is_told(type(default)) else []
    return held if hasattr(type(value), "default_factory") else [value, *held]


def _owner(told: dict[int, str]) -> tuple[type, str] | None:
    """Find a class of the host's that has one of these members; it takes milliseconds."""
    classes, seen = [object], set[int]()
    while classes:
        class_ = classes.pop()
        if id(class_) in seen:
            continue
        seen.add(id(class_))
        classes += type.__subclasses__(class_)
        members = list(map(id, list(namespace_of(class_).values())))
        if not told.keys().isdisjoint(members) and not origins.is_guest_class(class_):
            return class_, next(told[each] for each in members if each in told)
    return None


class _Split:
    """A data descriptor, which comes before an object's dict.

    Args:
        own: what the guest wrote there; None for nothing.
    """

    __slots__ = ("_own",)

    def __init__(self, own: Any) -> None:
        self._own = own

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        found = BaseExceptionGroup.split if self._own is None else self._own
        get = getattr(type(found), "__get__", None)
        bound = found if get is None else get(found, instance, owner)
        return bound if instance is None or self._own is None else _checked(bound)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        # What can be called is guarded between runs, as methods are.
        raise TypeError("it is a method, and is called on an object")

    def __set__(self, instance: object, value: object) -> NoReturn:
        raise SandboxAttributeError("split() of a group of exceptions can be defined in its class only")


def _checked(split: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*args: Any, **kwargs: Any) -> Any:
        pair = split(*args, **kwargs)
        if type(pair) is tuple and len(pair) == 2 and all(map(_is_part, pair)):
            return pair
        raise TypeError(
            "split() of a group of exceptions must give two groups, or None for one that is empty"
        )

    return checked


def _is_part(value: Any) -> bool:
    return value is None or issubclass(type(value), BaseExceptionGroup)


def _keep_whole(namespace: dict[str, Any], class_name: Any, bases: Iterable[Any]) -> None:
    """Have a class over a group of exceptions give pairs, by whatever way it is asked for ``split``."""
    parts = [part for base in bases if isinstance(base, type) for part in mro_of(base)]
    if not any(part is BaseExceptionGroup for part in parts):
        return
    guests = [namespace, *(namespace_of(part) for part in parts if origins.is_guest_class(part))]
    if any("__getattribute__" in names for names in guests):
        raise SandboxTypeError(
            f"class {class_name} cannot define __getattribute__: it is a group of exceptions"
        )
    own = dict.get(namespace, "split")
    dict.__setitem__(namespace, "split", own if type(own) is _Split else _Split(own))


def _is_split(class_: type, name: str) -> bool:
    """Return whether *name* is that of the ``split`` of such a class."""
    return name == "split" and issubclass(class_, BaseExceptionGroup)
