"""Checks of the namespace of a guest class, for every way to make a class.

Two kinds of members need more than a look at their name:

* Making a class calls ``__set_name__`` of its members. A descriptor of a host class keeps by that under which
  private name an instance has its value. A second name would also hold for the class it was made for.
* ``except*`` calls ``split()`` of a group of exceptions and trusts the result to be a pair; any other result
  ends the process. A class over a group gets a ``split`` that checks the result, and that comes before an
  attribute of an instance.
"""

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
from agex.sandbox.classes import hook_guards, host_classes, stand_ins, unsafe_protocols
from agex.sandbox.classes.identity import is_one_of
from agex.sandbox.rules import names as ledger
from agex.sandbox.runtime import provenance
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

_NEVER = ledger.NEVER_DEFINED.union(unsafe_protocols.NAMES)
_SAYABLE = ledger.DEFINABLE | {
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__classcell__",
    "__classdict__", "__classdictcell__", "__conditional_annotations__", "__dataclass_fields__",
    "__dataclass_params__", "__parameters__", "__type_params__",
}  # fmt: skip
"""Dunders that a metaclass may get: definable ones, and those that compilers and decorators add."""


def check(namespace: Any, class_name: Any) -> None:
    """Refuse names that no guest class may have."""
    is_dict = isinstance(namespace, dict)
    members = dict.keys(namespace) if is_dict else namespace.keys()
    odd = {*map(type, members)} - {str}
    if odd:  # it may change what it equals
        raise SandboxTypeError(
            f"class {class_name} has a member named by a {odd.pop().__name__}; use a plain str"
        )
    for member in _NEVER.intersection(members):
        value = dict.__getitem__(namespace, member) if is_dict else namespace[member]
        if not unsafe_protocols.is_kept(value) and type(value) is not types.GetSetDescriptorType:
            raise SandboxTypeError(
                f"class {class_name} cannot define {member}; use a context manager or a plain method"
            )
    if is_dict:
        _check_told(namespace, class_name)


def of_its_own(namespace: dict[str, Any], class_name: Any, makers: Iterable[Any]) -> dict[str, Any]:
    """Return a copy, which stays as it was checked; an instance of a guest class could change its answers.

    A namespace of a library's class stays as it is if a metaclass of that library, among *makers*, made it.
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
    """Return a copy with *module* as its default module: a finalizer could change the original meanwhile."""
    kind: Any = OrderedDict if type(namespace) is OrderedDict else dict  # which has an order of its own
    made = dict(kind.items(namespace))
    made.setdefault("__module__", module)
    return made


def check_prepared(body: types.CodeType, metaclass: Any, class_name: Any) -> None:
    """Refuse a generic class in the body of a class whose namespace a guest metaclass prepares.

    The interpreter reads ``.type_params`` from that namespace and takes the value for a tuple.
    """
    parts = mro_of(metaclass) if isinstance(metaclass, type) else ()
    maker = next((part for part in parts if "__prepare__" in namespace_of(part)), metaclass)
    # Its own metaclass may answer in its place.
    is_own = not parts or any(map(provenance.is_guest_class, (maker, *mro_of(type(metaclass)))))
    inner = (each for each in body.co_consts if isinstance(each, types.CodeType))
    if is_own and any(".generic_base" in each.co_varnames for each in inner):
        raise SandboxTypeError(
            f"class {class_name} has a __prepare__() and cannot hold a generic class; define that outside"
        )


def _is_prepared(kind: type, makers: Iterable[Any]) -> bool:
    parts = [part for maker in makers if isinstance(maker, type) for part in mro_of(maker)]
    packages = {_package_of(part) for part in parts if not provenance.is_guest_class(part)}
    package = _package_of(kind)
    is_library = package != "" and package not in sys.stdlib_module_names
    return is_library and package in packages and not provenance.is_guest_class(kind)


def _package_of(class_: type) -> str:
    module: object = module_of(class_)
    return module.partition(".")[0] if type(module) is str else ""


_OF_ENUMERATIONS: type = type(enum.EnumType.__prepare__("_", ()))


def check_given(namespace: dict[str, Any], class_name: Any, *, is_unseen: bool) -> None:
    """Refuse members that no class statement has: ``type(name, bases, namespace)`` takes any dunder.

    The interpreter puts the real namespace of the new class into a cell (Python 3.12). That namespace is
    behind all guards. The cell *is_unseen* only if no guest code gets the parts of the class.
    """
    check(namespace, class_name)
    if not is_unseen:
        dict.pop(namespace, "__classdictcell__", None)
    for member in dict.keys(namespace):
        if ledger.is_dunder(member) and member not in _SAYABLE:
            raise SandboxTypeError(f"class {class_name} cannot define {member}; give it another name")


def check_enumeration(namespace: dict[str, Any], class_name: Any, bases: Iterable[type]) -> None:
    """Refuse a member named as a method of a base: the members would look for it on their value."""
    parts = [part for base in bases for part in mro_of(base) if not issubclass(type(part), enum.EnumType)]
    for member, value in dict.items(namespace):
        if ledger.is_dunder(member) or hasattr(type(value), "__get__"):
            continue
        for part in parts:
            # Methods of builtin classes are no secrets, nor are their results.
            if not host_classes.is_static(part) and hasattr(type(namespace_of(part).get(member)), "__get__"):
                raise SandboxTypeError(
                    f"enumeration {class_name} cannot have a member named {member}, which {part.__name__} "
                    "defines; choose another name"
                )


_TABLES = frozenset({"_member_map_", "_value2member_map_", "_member_names_"})


def is_kept(class_: type, name: str) -> bool:
    """Return whether a class must keep the value that it was made with under a name.

    An enumeration keeps its members, which are looked up there when one is stored.
    """
    is_table = name in _TABLES and issubclass(type(class_), enum.EnumType)
    return is_table or _is_split(class_, name)


def is_over_abstract(bases: Iterable[Any]) -> bool:
    """Return whether an abstract host class would hear the answers of classes over *bases*.

    ``isinstance(x, Sequence)`` asks each subclass of ``Sequence`` whether *x* is an instance, and keeps the
    answer as long as the process lives.
    """
    parts = [part for base in bases if isinstance(base, type) for part in mro_of(base)]
    return any(
        issubclass(type(part), abc.ABCMeta) and part not in _ASKED_BY_NOBODY
        for part in parts
        if not provenance.is_guest_class(part)
    )


_ASKED_BY_NOBODY: tuple[Any, ...] = (abc.ABC, typing.Protocol)

OF_ABSTRACT: type = type(vars(abc.ABC)["_abc_impl"])
"""The type of the data that the interpreter keeps in each abstract class."""


def check_over(
    namespace: dict[str, Any],
    class_name: Any,
    bases: tuple[Any, ...],
    makers: Iterable[Any],
    said: dict[str, Any],
    *,
    check_statement: Callable[[dict[str, Any], Any, tuple[Any, ...], dict[str, Any]], None],
) -> None:
    """Refuse members that do not fit the bases of a class, and replace those that need a guard."""
    _check_abstract(namespace, class_name, bases, makers)
    _check_home(namespace, class_name, makers)
    check_statement(namespace, class_name, bases, said)
    _keep_whole(namespace, class_name, bases)


def _check_home(namespace: dict[str, Any], class_name: Any, makers: Iterable[Any]) -> None:
    """Refuse the module of another class, if annotations in strings are looked up in it."""
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
    """Refuse a guest class that could make others pass for subclasses of an abstract host class."""
    if not is_over_abstract(bases):
        return
    asked = [(part, "__subclasshook__") for base in bases if isinstance(base, type) for part in mro_of(base)]
    asked += [
        (part, "__subclasscheck__") for maker in makers if isinstance(maker, type) for part in mro_of(maker)
    ]
    said = [hook for part, hook in asked if hook_guards.is_guarded(namespace_of(part).get(hook))]
    if dict.__contains__(namespace, "__subclasshook__") or said:
        raise SandboxTypeError(
            f"class {class_name} cannot have {said[0] if said else '__subclasshook__'}: it inherits from an "
            "abstract class that others use as well; derive it from abc.ABC"
        )


def are_fields(table: Any) -> bool:
    """Return whether a table of fields is as ``@dataclass`` makes it: readers of fields trust it."""
    dataclasses: Any = sys.modules.get("dataclasses")  # not imported for a table that may be there
    return type(table) is dict and all(
        type(key) is str and type(field) is dataclasses.Field and field.name == key
        for key, field in table.items()
    )


_FROZEN = (bool, bytes, float, int, str, type(None))


def making(is_own: Callable[[type], bool]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator of ``__new__`` of a guest metaclass, whose callers write to the result.

    So the result must be a guest class, a guest object, or immutable.
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
    """Refuse a call of a library's metaclass with keywords for the parts of a class, which are not checked.

    A guest metaclass may take any arguments; it calls another metaclass, which is checked.
    """
    new = next((part for part in mro_of(class_) if "__new__" in namespace_of(part)), object)
    if issubclass(class_, type) and not provenance.is_guest_class(new) and not host_classes.is_static(new):
        raise SandboxTypeError(
            f"{name_of(class_)}() takes a name, bases and a namespace, in this order and unnamed"
        )


def _check_told(namespace: dict[str, Any], class_name: Any) -> None:
    """Refuse members that a host class has already and that would be told another name."""
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
    """Return whether ``__set_name__`` of a type is Python code of the host."""
    part = next((part for part in mro_of(kind) if "__set_name__" in namespace_of(part)), None)
    if part is None or part is functools.cached_property:  # which takes no second name
        return False
    is_ours = provenance.is_guest_class(part) or stand_ins.is_ours(part)
    return not is_ours and type(namespace_of(part)["__set_name__"]) is types.FunctionType


def _told(value: Any) -> list[Any]:
    """Return the objects that are told a name: a field hands it on to its default."""
    try:
        default = object.__getattribute__(value, "default")
    except AttributeError:
        return [value]
    held = [default] if _is_told(type(default)) else []
    return held if hasattr(type(value), "default_factory") else [value, *held]


def _owner(told: dict[int, str]) -> tuple[type, str] | None:
    """Return a host class that has one of these members, and the name; this takes milliseconds."""
    classes, seen = [object], set[int]()
    while classes:
        class_ = classes.pop()
        if id(class_) in seen:
            continue
        seen.add(id(class_))
        classes += type.__subclasses__(class_)
        members = list(map(id, list(namespace_of(class_).values())))
        if not told.keys().isdisjoint(members) and not provenance.is_guest_class(class_):
            return class_, next(told[each] for each in members if each in told)
    return None


class _Split:
    """A data descriptor, which comes before the dict of an instance.

    Args:
        own: the ``split`` that guest code wrote; None without one.
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
        # Callable values are guarded between runs, as methods are.
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
    """Replace ``split`` in a class over a group of exceptions, so that every call returns a pair."""
    parts = [part for base in bases if isinstance(base, type) for part in mro_of(base)]
    if not any(part is BaseExceptionGroup for part in parts):
        return
    guests = [namespace, *(namespace_of(part) for part in parts if provenance.is_guest_class(part))]
    if any("__getattribute__" in names for names in guests):
        raise SandboxTypeError(
            f"class {class_name} cannot define __getattribute__: it is a group of exceptions"
        )
    own = dict.get(namespace, "split")
    dict.__setitem__(namespace, "split", own if type(own) is _Split else _Split(own))


def _is_split(class_: type, name: str) -> bool:
    """Return whether a name is ``split`` of a class over a group of exceptions."""
    return name == "split" and issubclass(class_, BaseExceptionGroup)
